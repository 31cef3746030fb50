//! Functions built by a device, and asked on it. The bits are those that the CPU gives for the same keys and settings.
