//! The end of a system: it accepts no more actors, then the tree ends from the leaves up, then the threads end.

use crate::core::any_actor_ref::AnyActorRef;
use crate::core::error::ShutdownError;
use crate::core::system::{End, SystemCore};
use crate::dispatch::stepping::left_to_wait;
use crate::sync::atomic::Ordering;
use crate::sync::lock;
use crate::util::panic::quietly;
use crate::util::reclaim;
use crate::util::stderr_log::report;
use std::fmt;
use std::time::{Duration, Instant};

/// The role of a hidden actor, and the actor that it works for.
#[derive(Clone)]
pub(crate) struct HelperRole(pub &'static str, pub AnyActorRef);

/// The largest number of stuck actors that an error names.
const STUCK_NAMED_MAX: usize = 32;

impl SystemCore {
    /// Notes the end of the root, which is the last of all actors.
    pub(crate) fn tree_ended(&self) {
        self.dead_letters.system_ends();
        self.events.let_references_go();
        self.extensions.each(|feature| feature.tree_ended(&self.name));
        let before = std::mem::replace(&mut *lock(&self.end), End::TreeEnded);
        self.ended.notify_all();
        if before == End::Orphaned {
            self.release_threads();
        }
    }

    /// Leaves the end to the background, since no thread will wait for it: the thread that completes the end releases
    /// the threads.
    pub(crate) fn end_in_background(&self) {
        let ended = {
            let mut end = lock(&self.end);
            if *end == End::NotYet {
                *end = End::Orphaned;
            }
            *end == End::TreeEnded
        };
        if ended {
            self.release_threads();
        }
    }

    /// Tells the threads to end and waits only for the timer thread, which runs nothing long: the caller may be another
    /// of these threads.
    fn release_threads(&self) {
        self.extensions.each(|feature| feature.release());
        self.timers.stop();
        self.dispatchers.stop();
        let tree = lock(&self.tree).take();
        drop(tree);
    }

    pub(crate) fn begin_end(&self) {
        // Ordering: Relaxed; see `SystemCore::actor_begins`.
        self.closed.store(true, Ordering::Relaxed);
        self.dead_letters.system_ends();
        if let Ok(user) = self.user() {
            user.stop();
        }
    }

    /// Waits until the root has ended; only this thread knows of the root.
    pub(crate) fn wait_for_tree(&self) {
        let mut end = lock(&self.end);
        while matches!(*end, End::NotYet | End::Orphaned) {
            end = self.ended.wait(end).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    pub(crate) fn wait_for_end(&self, deadline: Duration) -> Result<(), ShutdownError> {
        if crate::dispatch::may_block::must_not_wait() || self.runs_current_thread() {
            return Err(ShutdownError::OwnThread);
        }
        let reached = self.run_turns(&mut || !matches!(*lock(&self.end), End::NotYet | End::Orphaned));
        let deadline = left_to_wait(reached, deadline);
        let until = Instant::now().checked_add(deadline);
        let mut end = lock(&self.end);
        while matches!(*end, End::NotYet | End::Orphaned) {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            end = match left {
                Some(Duration::ZERO) => {
                    drop(end);
                    return Err(ShutdownError::Stuck { waited: deadline, actors: self.stuck() });
                }
                Some(left) => match self.ended.wait_timeout(end, left) {
                    Ok((end, _)) => end,
                    Err(poisoned) => poisoned.into_inner().0,
                },
                None => self.ended.wait(end).unwrap_or_else(|poisoned| poisoned.into_inner()),
            };
        }
        Ok(())
    }

    /// Returns whether the calling thread runs this system's actors, and so would wait for itself. A function that a
    /// timer fires must not wait anywhere.
    pub(crate) fn runs_current_thread(&self) -> bool {
        self.dispatchers.run_current_thread()
    }

    pub(crate) fn shut_down(&self, deadline: Duration) -> Result<(), ShutdownError> {
        if *lock(&self.end) == End::Joined {
            return Ok(());
        }
        let until = Instant::now().checked_add(deadline);
        self.begin_end();
        self.wait_for_end(deadline)?;
        // Features end within the deadline, too: the last bytes of connections go out.
        self.extensions.each(|feature| feature.stop(until));
        self.timers.stop();
        self.dispatchers.end();
        // A system that has ended must not keep memory that was retired while an outside thread was sending.
        reclaim::process_domain().collect();
        *lock(&self.end) = End::Joined;
        let tree = lock(&self.tree).take();
        drop(tree);
        Ok(())
    }

    /// Ends the system when its [`System`](crate::System) is dropped. An end that takes longer than `deadline` goes on
    /// without the handle.
    pub(crate) fn end_with_handle(&self, deadline: Duration) {
        if *lock(&self.end) == End::Orphaned {
            return;
        }
        match self.shut_down(deadline) {
            Ok(()) => return,
            Err(ShutdownError::Stuck { actors, .. }) => {
                self.report_drop(format_args!("was dropped with actors still running: {actors:?}"));
                // The end of the tree, which would report this, may never come.
                self.extensions.each(|feature| feature.abandoned(&self.name));
            }
            Err(ShutdownError::OwnThread) => self.report_drop(format_args!(
                "was dropped on a thread that may not wait for its actors, such as in a handler, and ends in the \
                 background; keep the `System` where the program waits, and a `SystemRef` elsewhere"
            )),
        }
        self.end_in_background();
    }

    fn report_drop(&self, text: fmt::Arguments<'_>) {
        // The logger is user code.
        quietly(|| report!(self.stderr, End, log::Level::Warn, "system {:?} {text}", self.name));
    }

    /// Returns the paths of actors that have not ended, deepest first where it matters: the leaves of the remaining
    /// tree. A hidden actor that works for another actor is named after that actor.
    pub(crate) fn stuck(&self) -> Vec<String> {
        let mut stuck = Vec::new();
        // The rest of the tree waits for `/user`, and is not stuck itself meanwhile.
        let top = self.tree().map(|tree| if tree.user.is_closed() { tree.root } else { tree.user });
        let mut open: Vec<AnyActorRef> = top.into_iter().collect();
        while let Some(actor) = open.pop() {
            let children = actor.core().children.all();
            if children.is_empty() && stuck.len() < STUCK_NAMED_MAX {
                let path = actor.path();
                stuck.push(match actor.core().children.front::<HelperRole>() {
                    Some(HelperRole(role, owner)) => format!("{} (its {role} {path})", owner.path()),
                    None => path.to_string(),
                });
            }
            open.extend(children);
        }
        stuck
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use crate::prelude::*;
    use crate::shutdown::Phase;
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(30);

    /// The log records of the system.
    struct Records(Mutex<Vec<String>>);

    static RECORDS: Records = Records(Mutex::new(Vec::new()));

    impl log::Log for Records {
        fn enabled(&self, _: &log::Metadata<'_>) -> bool {
            true
        }
        fn log(&self, record: &log::Record<'_>) {
            let text = record.args().to_string();
            if text.starts_with("system \"stuck\": ") {
                self.0.lock().unwrap().push(text);
            }
        }
        fn flush(&self) {}
    }

    /// Stays in its handler until the test releases it.
    struct Held(Sender<()>, Receiver<()>);

    impl Actor for Held {
        type Message = ();
        fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
            self.0.send(())?;
            let _ = self.1.recv();
            Ok(())
        }
    }

    #[test]
    fn a_system_that_is_dropped_over_a_stuck_handler_names_the_tasks_that_have_not_run_once() {
        let _ = log::set_logger(&RECORDS);
        log::set_max_level(log::LevelFilter::Warn);
        let system = System::builder("stuck").build().unwrap();
        let handle = system.handle().clone();
        let ((sender, is_inside), (release, released)) = (channel(), channel());
        let mut state = Some(Held(sender, released));
        let actor = system.spawn(move || state.take().expect("it does not fail")).unwrap();
        actor.tell(());
        is_inside.recv_timeout(LONG).unwrap();
        let add =
            |name| handle.coordinated_shutdown().add_task(Phase::SERVICE_STOP, name, || Ok(())).unwrap();
        add("write the cache");
        system.core().end_with_handle(Duration::ZERO);
        let warned = || std::mem::take(&mut *RECORDS.0.lock().unwrap());
        let warning = |what, name| {
            format!(
                "system \"stuck\": {what} without a coordinated shutdown, tasks not run: \"{name}\" of phase \
                 \"service-stop\"; call `run` on the coordinated shutdown before the system is stopped or dropped"
            )
        };
        assert_eq!(warned(), [warning("dropped while actors still run,", "write the cache")]);
        drop(system);
        assert_eq!(warned(), [""; 0], "it has given up waiting");
        add("too late");
        drop(release);
        handle.wait_until_ended(LONG).unwrap();
        assert_eq!(warned(), [warning("ended", "too late")], "each task is named once");
    }
}
