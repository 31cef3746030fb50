//! Clusters of processes on this machine, against DataFusion in this process: a scheduler and two executors, on free
//! ports of the loopback device.

mod answers;
mod kills;
mod plain_executor;
mod processes;
