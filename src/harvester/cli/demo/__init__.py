"""`harvester demo`: the catalogs of two invented shops, from a partner's server to consumers, in a separate database.

home     the demo's directory with its data, login and log
catalog  the catalogs
partner  the SFTP server that serves them
shop     sets up the retailers, sources and feeds
acts     the expected result of each run, compared with the real one
story    runs the feeds with real workers, kills one of them, and prints what happens
stage    starts and stops the processes
"""
