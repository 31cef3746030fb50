//! The CUDA executor on a driver that polices it.
