"""Jobs in the portal: the list, the monitoring views, the page of one job and what may be done to it."""
