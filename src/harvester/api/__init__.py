"""The JSON interface: offers for applications, feeds and runs for operators. It calls verbs and owns no rule."""
