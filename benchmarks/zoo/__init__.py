"""The zoo on recorded matrices (`zoo`), what each router costs (`zoo.cost`); read `run` first."""

from benchmarks.zoo.run import add_arguments, run

__all__ = ["add_arguments", "run"]
