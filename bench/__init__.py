"""How fast Amanu is, against the least an agent can cost and against its peers. `python -m bench --help`."""
