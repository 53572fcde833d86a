"""Running the house: audit trail, the verbs on jobs, metrics, retention, the database's roles."""
