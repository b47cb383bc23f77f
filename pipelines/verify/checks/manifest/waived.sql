-- kind: consistent
-- says: each finding of the metering audit is waived: no other release is written
-- severity: error
-- needs: models
-- key: finding
WITH findings AS (
    SELECT unnest(told->'figures'->'audit'->'$.findings[*]')->>'check' AS finding FROM manifest
), gates AS (SELECT unnest(told->'$.waivers[*]')->>'gate' AS gate FROM manifest)
SELECT DISTINCT coalesce(finding, 'none') AS finding, 'it is not waived' AS found,
       'a waiver, since the release was written' AS expected
FROM findings
WHERE NOT EXISTS (FROM gates WHERE gate IN ('metering', 'metering:' || coalesce(finding, 'None')))
