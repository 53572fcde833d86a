"""The checks of `harvester doctor`. Each returns one finding."""
