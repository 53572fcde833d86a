"""The only code that connects to other systems or handles secrets."""
