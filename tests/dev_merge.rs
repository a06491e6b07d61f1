#[path = "it/support.rs"]
mod support;
#[path = "it/send_future.rs"]
mod send_future;
#[path = "it/requests.rs"]
mod requests;
#[path = "it/topology_start.rs"]
mod topology_start;
