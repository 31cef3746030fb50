//! Clusters of processes on this machine: a scheduler and two executors, on free ports of the loopback device, against
//! DataFusion in this process.

mod answers;
mod kills;
mod plain_executor;
mod processes;
