"""`harvester demo`: the catalogs of two shops, from a partner's server to what consumers see, on a database of its own.

command     what is typed
home        where the demo's data, login and log lie
shop_lines  what the invented shops sell
catalog     the catalogs that they send
partner     the SFTP server that they are fetched from
shop        sets up their retailers, sources and feeds
acts        what each run must come to, and whether it did
consumer    what a consumer finds meanwhile
story       plays the runs through real workers, and kills one
telling     how it is told
stage       starts and stops the processes
"""
