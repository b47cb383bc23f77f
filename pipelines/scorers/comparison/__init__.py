"""Values of answers and whether two are equal: numbers, quantities, mathematical forms, words."""
