"""One file per thing that is generated, each a function of the schema that `schema.build` makes."""
