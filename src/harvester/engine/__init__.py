"""Durable jobs on PostgreSQL: enqueue in a transaction, claim, heartbeat, fence, retry, rescue, schedule."""
