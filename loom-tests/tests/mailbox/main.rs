//! Models of mailboxes.

#[cfg(not(pointsman_loom))]
compile_error!("models need the loom mirror: run cargo loom");

mod mailbox;
mod mailbox_bounded;
mod mailbox_lane;
mod mailbox_many;
mod mailbox_ordered;
mod room_for_all;
#[path = "../support/mod.rs"]
mod support;
