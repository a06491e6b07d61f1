//! A subscription to a group tells an actor the statuses of the group's actors.

use crate::core::actor_ref::ActorRef;
use crate::group::group::Group;
use crate::group::key::GroupKey;
use crate::group::state::GroupState;
use crate::group::status::{StatusReport, Tell, reports_to};
use crate::sync::lock;
use crate::util::panic::drop_guarded;
use crate::util::reclaim;
use std::sync::Arc as StdArc;

impl<M: Send + 'static, K: GroupKey> Group<M, K> {
    /// Subscribes an actor to the statuses of this group's actors. The subscriber is told at once of each present
    /// actor, and from then on of each change, until the subscriber has ended. An actor that has been created and has
    /// not had its first turn does not count as present. An actor that subscribes twice is told twice.
    ///
    /// The reports of a single key come in their order, and the reports of different keys in any order. Reports are
    /// ordinary messages: a report that the subscriber's mailbox refuses is a dead letter. A group without subscribers
    /// keeps only each key's status, and does nothing at all when messages are sent or handled.
    ///
    /// elfo's `SubscribeToActorStatuses`.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::group::{ActorStatus, StatusReport};
    /// use std::sync::mpsc::channel;
    ///
    /// struct Disk;
    /// impl Actor for Disk {
    ///     type Message = u32;
    ///     fn receive(&mut self, _: u32, ctx: &mut Context<u32>) -> HandlerResult {
    ///         ctx.set_alarming("almost full");
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let disks = system.group("disks").by_key(|disk: &u32| *disk, |_, _| Disk).spawn()?;
    /// let (sender, reports) = channel();
    /// disks.subscribe_statuses(&ActorRef::from_fn(move |report: StatusReport<u32>| {
    ///     let _ = sender.send((report.key, report.status));
    /// }));
    /// disks.tell(7_u32);
    /// assert_eq!(reports.recv()?, (7, ActorStatus::Initialising));
    /// assert_eq!(reports.recv()?, (7, ActorStatus::Normal));
    /// assert_eq!(reports.recv()?, (7, ActorStatus::Alarming("almost full".into())));
    /// # Ok(())
    /// # }
    /// ```
    pub fn subscribe_statuses(&self, subscriber: &ActorRef<StatusReport<K>>) {
        let path = self.head().path();
        self.group_state.subscribe(reports_to(path.name(), subscriber, K::clone));
    }
}

impl<M: Send + 'static, K: GroupKey> GroupState<M, K> {
    /// Subscribes this function to the status of each actor, and to all changes.
    pub(crate) fn subscribe(&self, tell: StdArc<Tell<K>>) {
        self.statuses.add(tell);
        let mut key_entries = Vec::new();
        {
            let section = reclaim::section();
            self.table.for_each(&section, |slot| key_entries.push(slot.key_entry.clone()));
        }
        // In this order: an actor that gives its key slot to a successor meanwhile is among the living actors until it
        // has ended.
        let mut living: Vec<_> =
            lock(&self.living).iter().map(|(actor, key_entry)| (actor.uid(), key_entry.clone())).collect();
        living.sort_unstable_by_key(|(uid, _)| *uid);
        key_entries.extend(living.into_iter().map(|(_, key_entry)| key_entry));
        for key_entry in &key_entries {
            self.statuses.introduce(key_entry);
        }
        drop_guarded(key_entries);
        self.statuses.deliver();
    }
}
