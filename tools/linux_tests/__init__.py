"""The tests on Debian 13: the whole suite with its Python, and the Vulkan engine on Mesa's software driver."""
