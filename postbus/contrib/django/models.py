"""No models: Postbus has tables of its own. Django says that it has migrated only to apps with this module."""
