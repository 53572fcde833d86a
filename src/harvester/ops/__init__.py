"""Operations: users, API keys, audit log, alerts, jobs, metrics, retention, the database's roles."""
