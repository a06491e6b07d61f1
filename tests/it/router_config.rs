//! Routers as the system says at their paths, in code or in a file.

use crate::support::*;
use pointsman::ask::{Answerable, Attempt};
use pointsman::mailbox::MailboxFault;
use pointsman::prelude::*;
use pointsman::routing::{
    Balancing, Broadcast, ConsistentHashing, DefaultResizer, HashKey, ManageError,
    OptimalSizeExploringResizer, Random, RoundRobin, RouteContext, Routees, RouterPlan, RouterSettings,
    RoutingLogic, ScatterGatherFirstCompleted, SectionFault, TailChopping,
};
use pointsman::settings::Deployment;
use pointsman::testkit::TestSystem;
use pointsman::{BuildError, SendError, SpawnError};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// Answered by 0, which is no success, unless the question is kept.
#[derive(Clone)]
struct Question {
    is_kept: bool,
}

impl Request for Question {
    type Reply = usize;
    fn is_success(reply: &usize) -> bool {
        *reply != 0
    }
}

const REFUSE: Question = Question { is_kept: false };
const KEEP: Question = Question { is_kept: true };

#[derive(Clone)]
enum Job {
    Note(u64),
    Ask(Call<Question>),
}

impl From<u64> for Job {
    fn from(number: u64) -> Self {
        Job::Note(number)
    }
}

impl From<Call<Question>> for Job {
    fn from(call: Call<Question>) -> Self {
        Job::Ask(call)
    }
}

impl Answerable for Job {
    fn fork(&mut self, attempt: &Attempt) -> bool {
        match self {
            Job::Ask(call) => call.fork(attempt),
            Job::Note(_) => false,
        }
    }
}

impl HashKey for Job {
    fn feed(&self, to: &mut pointsman::routing::KeySink) {
        if let Job::Note(number) = self {
            number.feed(to);
        }
    }
}

/// Reports what it gets, by its number.
struct Worker {
    number: usize,
    log: Sender<(usize, u64)>,
    kept: Vec<Call<Question>>,
}

/// What is reported of a question.
const ASKED: u64 = u64::MAX;

impl Actor for Worker {
    type Message = Job;
    fn receive(&mut self, job: Job, _: &mut Context<Job>) -> HandlerResult {
        match job {
            Job::Note(number) => self.log.send((self.number, number))?,
            Job::Ask(call) => {
                self.log.send((self.number, ASKED))?;
                if call.request.is_kept {
                    self.kept.push(call);
                } else {
                    call.answer(|_| 0);
                }
            }
        }
        Ok(())
    }
}

type Got = Receiver<(usize, u64)>;

fn workers() -> (impl Fn(&mut Context<Job>) -> Worker + Clone + Send + Sync + 'static, Got) {
    let (log, got) = channel();
    let make = move |ctx: &mut Context<Job>| Worker {
        number: ctx.routee_index(),
        log: log.clone(),
        kept: Vec::new(),
    };
    (make, got)
}

/// Three workers at `/user/a`, `/user/b` and `/user/c`.
fn foreign(system: &SystemRef) -> (Vec<ActorRef<Job>>, Got) {
    let (log, got) = channel();
    let actors = ["a", "b", "c"].iter().enumerate().map(|(number, name)| {
        let log = log.clone();
        let make = move || Worker { number, log: log.clone(), kept: Vec::new() };
        system.actor(name).spawn(make).unwrap()
    });
    (actors.collect(), got)
}

/// A system that says this of `/user/router`.
fn saying(says: RouterSettings) -> TestSystem {
    let deployment = Deployment::new().router(says);
    let builder =
        TestSystem::builder().seed(5).configure(move |builder| builder.deploy("/router", deployment));
    let system = builder.build();
    system.allow_running();
    system
}

/// A system that is set by this file.
fn reading(toml: &'static str) -> TestSystem {
    let builder = TestSystem::builder().seed(5).configure(|builder| builder.config(toml).unwrap());
    let system = builder.build();
    system.allow_running();
    system
}

fn says(router: &str) -> RouterSettings {
    RouterSettings::new().router(router)
}

/// Who got how much of what has been sent.
fn gone(system: &TestSystem, got: &Got) -> Vec<usize> {
    system.run_until_idle();
    got.try_iter().map(|(number, _)| number).collect()
}

/// By which logic a router of three routees chooses, by what is seen of it.
fn seen(system: &TestSystem, router: &Router<Job>, got: &Got) -> &'static str {
    router.tell(1u64);
    let copies = gone(system, got).len();
    let asked = router.ask(REFUSE);
    let attempts = gone(system, got).len();
    // Who passes on the first reply does not wait for others.
    match (copies, attempts, asked.wait()) {
        (3, 3, Ok(0)) => return "broadcast",
        (3, 3, Err(AskError::AllFailed { .. })) => return "scatter-gather",
        (1, 3, Err(AskError::AllFailed { .. })) => return "tail-chopping",
        (1, 1, Ok(0)) => {}
        other => panic!("{other:?}"),
    }
    let routees = router.routees().unwrap();
    let is_by_path = routees[0].queued().is_none();
    if !is_by_path {
        (0..3u64).for_each(|number| router.tell(number));
        let in_mailboxes: usize = routees.iter().filter_map(ActorRef::queued).sum();
        gone(system, got);
        if in_mailboxes == 0 {
            return "balancing";
        }
    }
    (0..10).for_each(|_| router.tell(7u64));
    if gone(system, got).windows(2).all(|two| two[0] == two[1]) {
        return "consistent-hashing";
    }
    if !is_by_path {
        (0..100u64).for_each(|number| routees[0].tell(number));
        let mut is_even = true;
        for number in 0..60u64 {
            router.tell(number);
            is_even &= routees[1].queued().unwrap().abs_diff(routees[2].queued().unwrap()) < 2;
        }
        let to_the_busy_one = routees[0].queued() != Some(100);
        gone(system, got);
        match (to_the_busy_one, is_even) {
            (false, true) => return "smallest-mailbox",
            (false, false) => return "two-choices",
            _ => {}
        }
    }
    (0..30u64).for_each(|number| {
        router.tell(number);
        system.run_until_idle();
    });
    match gone(system, got).windows(2).all(|two| two[1] == (two[0] + 1) % 3) {
        true => "round-robin",
        false => "random",
    }
}

const EVERYWHERE: [&str; 6] =
    ["round-robin", "random", "broadcast", "scatter-gather", "tail-chopping", "consistent-hashing"];

#[test]
fn each_kind_of_pool_is_what_its_name_says_whatever_the_code_has() {
    for logic in EVERYWHERE.into_iter().chain(["smallest-mailbox", "two-choices", "balancing"]) {
        let system = saying(says(&format!("{logic}-pool")));
        let (make, got) = workers();
        let plan = system.router("router").pool(3, make).answerable().keyed(|job, key| key.feed(job));
        let router = match logic {
            "random" => plan.spawn().unwrap(),
            _ => plan.logic(Random::new()).spawn().unwrap(),
        };
        assert_eq!(seen(&system, &router, &got), logic);
        router.stop();
        system.finish();
    }
}

#[test]
fn each_kind_of_group_is_what_its_name_says_over_references_paths_and_in_the_place_of_a_pool() {
    for logic in EVERYWHERE {
        let system = saying(says(&format!("{logic}-group")).routees_paths(["/user/a", "../b", "/user/c"]));
        let (actors, got) = foreign(&system);
        let (make, _) = workers();
        for plan in [
            system.router("router").group(actors.clone()),
            system.router("router").group_at(["/user/nobody"]),
            system.router("router").pool(7, make).resizer(DefaultResizer::new()),
        ] {
            let router = plan.answerable().keyed(|job, key| key.feed(job)).spawn().unwrap();
            assert_eq!(seen(&system, &router, &got), logic);
            router.stop();
            system.run_until_idle();
        }
        system.finish();
    }
    // References stay where no paths are said.
    let system = saying(says("broadcast-group"));
    let (actors, got) = foreign(&system);
    let router = system.router("router").group(actors).cloneable().spawn().unwrap();
    assert_eq!(seen(&system, &router, &got), "broadcast");
    system.finish();
}

#[test]
fn what_the_code_has_stays_where_the_system_says_nothing_from_code_or_the_same() {
    let shares = |says: Option<RouterSettings>| {
        let system = says.map_or_else(TestSystem::new, saying);
        system.allow_running();
        let (make, got) = workers();
        let router =
            system.router("router").pool(3, make).logic(Random::seeded(3)).on_failure(Strategy::default());
        let router = router.spawn().unwrap();
        (0..50u64).for_each(|number| router.tell(number));
        let mut got = gone(&system, &got);
        got.sort_unstable();
        router.stop();
        system.finish();
        got
    };
    let coded = shares(None);
    assert_eq!(shares(Some(RouterSettings::new().nr_of_instances(3))), coded);
    assert_eq!(shares(Some(says("from-code"))), coded);
    assert_eq!(shares(Some(says("random-pool"))), coded, "with its seed");
    assert_ne!(shares(Some(says("round-robin-pool"))), coded);
}

#[test]
fn a_section_that_leaves_the_router_to_the_code_leaves_its_size_alone() {
    crate::logged::listen();
    let resizer = DefaultResizer::new().lower_bound(4).upper_bound(6);
    for (says, size) in [
        (says("from-code").nr_of_instances(5), 2),
        (says("from-code").nr_of_instances(0), 2),
        (says("from-code").resizer(resizer.clone()), 2),
        (RouterSettings::new().nr_of_instances(5), 5),
        (RouterSettings::new().resizer(resizer), 4),
        (says("random-pool").nr_of_instances(5), 5),
    ] {
        let system = saying(says.clone());
        let router = system.router("router").pool(2, workers().0).spawn().unwrap();
        assert_eq!(router.size(), size, "{says:?}");
        router.stop();
        system.finish();
    }
    let warnings = crate::logged::with(
        "the size and the resizer at deployment.\"/router\".router.router have no effect",
    );
    assert!(warnings.len() == 3 && warnings[0].contains("/user/router"), "{warnings:?}");
}

#[test]
fn a_coded_key_is_kept_and_virtual_nodes_are_read_from_the_routers_own_section() {
    /// Who owns each of these keys.
    fn owners(says: Option<RouterSettings>, coded: u32) -> Vec<usize> {
        let system = says.map_or_else(TestSystem::new, saying);
        system.allow_running();
        let (make, got) = workers();
        let logic = ConsistentHashing::by(|job: &Job, key| job.feed(key)).virtual_nodes(coded);
        let router = system.router("router").pool(4, make).logic(logic).spawn().unwrap();
        (0..200u64).for_each(|number| router.tell(number));
        system.run_until_idle();
        let mut owners: Vec<(u64, usize)> = got.try_iter().map(|(number, key)| (key, number)).collect();
        owners.sort_unstable();
        router.stop();
        system.finish();
        owners.into_iter().map(|(_, number)| number).collect()
    }
    let (few, many) = (owners(None, 3), owners(None, 160));
    assert_ne!(few, many);
    for says in [says("from-code"), says("consistent-hashing-pool"), RouterSettings::new()] {
        assert_eq!(owners(Some(says.clone()), 160), many);
        assert_eq!(owners(Some(says.virtual_nodes(3)), 160), few);
    }
}

#[test]
fn a_predicate_for_broadcasts_stays_around_the_logic_that_the_system_names() {
    let system = saying(says("consistent-hashing-pool"));
    let (make, got) = workers();
    let plan = system.router("router").pool(3, make).keyed(|job, key| key.feed(job));
    let router = plan.broadcast_if(|job| matches!(job, Job::Note(0))).spawn().unwrap();
    router.tell(0u64);
    assert_eq!(gone(&system, &got).len(), 3);
    (0..10).for_each(|_| router.tell(7u64));
    let gone = gone(&system, &got);
    assert!(gone.len() == 10 && gone.iter().all(|number| *number == gone[0]), "{gone:?}");
    system.finish();
}

/// The key and the fault of a router that the system cannot have.
fn refused<L: RoutingLogic<Job>>(
    says: RouterSettings,
    plan: impl FnOnce(&TestSystem) -> RouterPlan<Job, L>,
) -> (String, SectionFault) {
    let system = saying(says);
    let living = system.living_actors();
    match plan(&system).spawn() {
        Err(SpawnError::Section { path, key, fault }) => {
            assert_eq!(path, "/user/router");
            assert_eq!(system.living_actors(), living);
            (key, fault)
        }
        other => panic!("{other:?}"),
    }
}

fn pool(system: &TestSystem) -> RouterPlan<Job, RoundRobin> {
    system.router("router").pool(3, workers().0)
}

fn group(system: &TestSystem) -> RouterPlan<Job, RoundRobin> {
    system.router("router").group([])
}

#[test]
fn an_ability_that_the_plan_lacks_is_named_with_the_key() {
    for (name, method) in [
        ("broadcast", "cloneable"),
        ("scatter-gather", "answerable"),
        ("tail-chopping", "answerable"),
        ("consistent-hashing", "keyed"),
    ] {
        for end in ["pool", "group"] {
            let name = format!("{name}-{end}");
            let says = says(&name).routees_paths(["/user/a"]);
            let (key, fault) = match end {
                "pool" => refused(says, pool),
                _ => refused(says, group),
            };
            assert_eq!(key, "deployment.\"/router\".router.router");
            assert_eq!(fault, SectionFault::Capability { name: name.clone(), method });
            assert!(fault.to_string().contains(&format!("{name:?}")), "{fault}");
            assert!(fault.to_string().contains(&format!("call `{method}`")), "{fault}");
        }
    }
    // One ability is not another.
    let (_, fault) = refused(says("scatter-gather-pool"), |system| pool(system).cloneable());
    assert!(matches!(fault, SectionFault::Capability { method: "answerable", .. }), "{fault}");
}

#[test]
fn pools_and_groups_that_nobody_can_make_are_refused() {
    let (key, fault) = refused(says("random-group"), pool);
    assert_eq!(key, "deployment.\"/router\".router.routees.paths");
    assert_eq!(fault, SectionFault::NoPaths { name: "random-group".into() });
    let (key, fault) = refused(says("random-pool").routees_paths(["/user/a"]), group);
    assert_eq!(key, "deployment.\"/router\".router.router");
    assert_eq!(fault, SectionFault::NoRecipe { name: "random-pool".into() });
    let (_, fault) = refused(says("balancing-pool"), group);
    assert_eq!(fault, SectionFault::NoRecipe { name: "balancing-pool".into() });
    // A balancing pool is one by its recipe.
    let balancing = |system: &TestSystem| -> RouterPlan<Job, Balancing<Job>> {
        system.router("router").balancing_pool(2, workers().0)
    };
    let (_, fault) = refused(says("random-pool"), balancing);
    assert_eq!(fault, SectionFault::SharedQueue { name: "random-pool".into() });
    let controlled = |system: &TestSystem| {
        pool(system).controller(|_: &std::sync::Arc<RoundRobin>, _: &mut Context<Tell>| {
            Role::new("controller", &channel().0).recipe()()
        })
    };
    let (_, fault) = refused(says("random-pool"), controlled);
    assert_eq!(fault, SectionFault::Controller { name: "random-pool".into() });
    // The same is no other.
    for (says, is_balancing) in
        [(says("balancing-pool"), true), (says("from-code"), true), (says("round-robin-pool"), false)]
    {
        let system = saying(says);
        let spawned = if is_balancing { balancing(&system).spawn() } else { controlled(&system).spawn() };
        assert!(spawned.is_ok(), "{spawned:?}");
        system.finish();
    }
}

#[test]
fn a_pool_made_balancing_shares_its_queue_and_takes_no_foreign_routee() {
    let system = saying(says("balancing-pool").nr_of_instances(2));
    let (make, got) = workers();
    let router = system.router("router").pool(5, make).spawn().unwrap();
    let (actors, _) = foreign(&system);
    let refused = router.add(actors[0].clone()).unwrap_err();
    assert!(matches!(refused, ManageError::SharedQueue { .. }), "{refused}");
    // What one routee has to do keeps nothing from the other.
    router.routees().unwrap()[0].tell(99u64);
    (0..10u64).for_each(|number| router.tell(number));
    assert_eq!(system.ledger().queued, 11, "the queue is in the books");
    assert_eq!(gone(&system, &got).len(), 11);
    router.resize_to(4).unwrap();
    router.drain().unwrap();
    let ledger = system.finish();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (0, 0), "{ledger}");
}

#[test]
fn a_section_names_the_queue_of_a_balancing_pool() {
    let saying = |queue: &str| {
        let file = format!(
            r#"
            [dispatcher.blocking]
            type = "blocking"
            [mailbox.two]
            type = "bounded"
            capacity = 2
            on-full = "drop-newest"
            [mailbox.patient]
            type = "bounded"
            capacity = 2
            on-full = "wait"
            wait = "1s"
            [deployment."/*".router]
            queue = "{queue}"
            [deployment."/made".router]
            router = "balancing-pool"
            "#
        );
        let builder = System::builder("queue").config(&file)?;
        Ok::<_, BuildError>(builder.build().expect("sound settings"))
    };
    let unknown = saying("three").unwrap_err().to_string();
    assert!(unknown.contains("deployment.\"/*\".router.queue") && unknown.contains("two"), "{unknown}");
    let system = saying("patient").unwrap();
    let refused = system.router("coded").balancing_pool(1, workers().0).spawn().unwrap_err();
    let SpawnError::Section { key, fault, .. } = &refused else { panic!("{refused}") };
    assert_eq!(key, "deployment.\"/*\".router.queue");
    assert!(matches!(fault, SectionFault::Queue(MailboxFault::NotShareable { .. })), "{refused}");
    // Others pass it over.
    assert!(system.router("other").pool(1, workers().0).spawn().is_ok());
    system.shutdown(LONG).unwrap();
    // The pattern that fits best says all, so a pool that is made balancing there has no bound.
    let system = saying("two").unwrap();
    for (name, bound) in [("coded", Some(2)), ("made", None)] {
        let (started, begun) = channel();
        let (release, held) = channel::<()>();
        let (started, held) = (Mutex::new(started), Mutex::new(held));
        let shared = std::sync::Arc::new((started, held));
        let recipe = move |_: &mut Context<()>| Holding(shared.clone());
        let router = match bound {
            Some(_) => system.router(name).balancing_pool(1, recipe).dispatcher("blocking").spawn(),
            None => system.router(name).pool(1, recipe).dispatcher("blocking").spawn(),
        };
        let router = router.unwrap();
        router.tell(());
        begun.recv_timeout(LONG).unwrap();
        let dropped = system.ledger().dropped;
        (0..5).for_each(|_| router.tell(()));
        assert_eq!(router.queued(), Some(bound.unwrap_or(5)), "{name}");
        assert_eq!(system.ledger().dropped - dropped, 5 - bound.unwrap_or(5) as u64, "{name}");
        drop(release);
    }
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

/// What a [`Holding`] tells of its first message, and waits for.
type Hold = std::sync::Arc<(Mutex<Sender<()>>, Mutex<Receiver<()>>)>;

/// Waits in each message until it is let go.
struct Holding(Hold);

impl Actor for Holding {
    type Message = ();
    fn receive(&mut self, _: (), _: &mut Context<()>) -> HandlerResult {
        let _ = self.0.0.lock().unwrap().send(());
        let _ = self.0.1.lock().unwrap().recv();
        Ok(())
    }
}

#[test]
fn wildcards_in_a_sections_paths_need_messages_that_can_be_cloned() {
    let all = || says("round-robin-group").routees_paths(["/user/*"]);
    let system = saying(all());
    let refused = group(&system).spawn().unwrap_err();
    assert!(matches!(&refused, SpawnError::RouteeWildcard { path, .. } if path == "/user/*"), "{refused}");
    let (_, got) = foreign(&system);
    let exact = system.router("router").group_at_exact::<Job>(["/user/a"]);
    assert!(matches!(exact.spawn(), Err(SpawnError::RouteeWildcard { .. })));
    for plan in [group(&system).cloneable(), system.router("router").group_at(["/user/a"])] {
        let router = plan.spawn().unwrap();
        router.tell(1u64);
        assert_eq!(gone(&system, &got).len(), 3);
        router.stop();
        system.run_until_idle();
    }
}

#[test]
fn groups_that_look_into_mailboxes_can_be_asked_for_also_over_paths() {
    for logic in ["smallest-mailbox", "two-choices"] {
        let system = saying(says(&format!("{logic}-group")));
        let (actors, got) = foreign(&system);
        let router = system.router("router").group(actors).spawn().unwrap();
        assert_eq!(seen(&system, &router, &got), logic);
        system.finish();
        // Nobody knows the load of a path: each gets its share.
        let system = saying(says(&format!("{logic}-group")).routees_paths(["/user/a", "../b", "/user/c"]));
        let (_, got) = foreign(&system);
        let router = group(&system).spawn().unwrap();
        (0..300u64).for_each(|number| router.tell(number));
        let gone = gone(&system, &got);
        let shares = [0, 1, 2].map(|number| gone.iter().filter(|to| **to == number).count());
        assert!(gone.len() == 300 && shares.iter().all(|share| *share > 50), "{shares:?}");
        system.finish();
    }
}

#[test]
fn a_router_from_the_configuration_needs_a_section_that_says_what_it_is() {
    let (make, got) = workers();
    let pool = |system: &TestSystem| system.router("router").pool_from_config(make.clone());
    let group = |system: &TestSystem| system.router("router").group_from_config::<Job>();
    for system in [TestSystem::new(), saying(says("from-code")), saying(RouterSettings::new())] {
        let children = system.living_actors();
        for refused in [pool(&system).spawn(), group(&system).spawn()] {
            let Err(SpawnError::Section { path, key, fault }) = refused else { panic!("{refused:?}") };
            assert_eq!(path, "/user/router");
            assert_eq!(key, "deployment.\"/router\".router.router");
            assert_eq!(fault, SectionFault::FromCode);
        }
        assert_eq!(system.living_actors(), children);
    }
    let (key, fault) = refused(says("random-group"), group);
    assert_eq!(
        (&*key, fault),
        (
            "deployment.\"/router\".router.routees.paths",
            SectionFault::NoPaths { name: "random-group".into() }
        )
    );
    let (_, fault) = refused(says("random-pool"), group);
    assert_eq!(fault, SectionFault::NoRecipe { name: "random-pool".into() });

    let system = saying(says("round-robin-pool"));
    let router = pool(&system).spawn().unwrap();
    assert_eq!(router.routees().unwrap().len(), 1, "Akka's default");
    let system = saying(says("random-pool").nr_of_instances(3));
    assert_eq!(seen(&system, &pool(&system).spawn().unwrap(), &got), "random");
    // Either may be a group.
    let system = saying(says("broadcast-group").routees_paths(["/user/a", "/user/b", "/user/c"]));
    let (_, got) = foreign(&system);
    for plan in [pool(&system), group(&system)] {
        let router = plan.cloneable().spawn().unwrap();
        assert_eq!(seen(&system, &router, &got), "broadcast");
        router.stop();
        system.run_until_idle();
    }
    system.finish();
}

/// All to the routee of this index.
struct Favourite(usize);

impl<M: Send + 'static> RoutingLogic<M> for Favourite {
    fn select(&self, _: &M, routees: &Routees<M>, _: &RouteContext<'_>) -> Option<usize> {
        if self.0 < routees.len() { Some(self.0) } else { None }
    }
}

fn favourite(says: &RouterSettings) -> Result<Favourite, String> {
    let index = says.options.get("index").ok_or("it has no option `index`")?;
    Ok(Favourite(index.parse().map_err(|error| format!("option index {index:?}: {error}"))?))
}

#[test]
fn a_logic_of_ones_own_is_found_by_its_name_and_gets_the_whole_section() {
    let system = TestSystem::builder()
        .configure(|builder| {
            let builder = builder
                .routing_logic::<Job, _>("favourite", favourite)
                .routing_logic::<u32, _>("small", favourite);
            let toml = r#"
                [deployment."/router".router]
                router = "favourite"
                options = { index = 2, comment = "x" }
                [deployment."/lost".router]
                router = "favourite"
                [deployment."/other".router]
                router = "small"
            "#;
            builder.config(toml).unwrap()
        })
        .build();
    system.allow_running();
    let (make, got) = workers();
    let router = system.router("router").pool(3, make.clone()).spawn().unwrap();
    (0..5u64).for_each(|number| router.tell(number));
    assert_eq!(gone(&system, &got), [2; 5]);
    router.stop();
    system.run_until_idle();
    // Over whatever routees the code has.
    let (actors, got) = foreign(&system);
    for plan in
        [system.router("router").group(actors), system.router("router").pool_from_config(make.clone())]
    {
        let router = plan.spawn().unwrap();
        router.tell(1u64);
        let expected: &[usize] = if router.routees().unwrap().len() == 3 { &[2] } else { &[] };
        assert_eq!(gone(&system, &got), expected);
        router.stop();
        system.run_until_idle();
    }
    let error = system.router("lost").pool(3, make.clone()).spawn().unwrap_err();
    assert_eq!(
        error.to_string(),
        "/user/lost, key `deployment.\"/lost\".router.router`: the logic \"favourite\": it has no option \
         `index`"
    );
    let error = system.router("other").pool(3, make).spawn().unwrap_err();
    let SpawnError::Section { fault: SectionFault::OtherMessage { name, message, known }, .. } = error else {
        panic!("{error}")
    };
    assert_eq!((&*name, &*known), ("small", &["u32"][..]));
    assert!(message.ends_with("Job"), "{message}");
    system.finish();
}

type Make = dyn Fn(&SystemRef, usize) -> Result<ActorRef<Job>, String> + Send + Sync;

/// Makes as many routees as its settings say, unless they say nothing; all messages go to the last one.
struct Founder {
    count: Option<usize>,
    make: Box<Make>,
}

impl RoutingLogic<Job> for Founder {
    fn select(&self, _: &Job, routees: &Routees<Job>, _: &RouteContext) -> Option<usize> {
        routees.len().checked_sub(1)
    }
    fn own_routees(&self, system: &SystemRef) -> Result<Option<Vec<ActorRef<Job>>>, String> {
        self.count.map(|count| (0..count).map(|index| (self.make)(system, index)).collect()).transpose()
    }
}

#[test]
fn a_group_by_configuration_takes_a_logic_that_makes_its_routees_itself() {
    let (log, got) = channel();
    let found = move |says: &RouterSettings| {
        let count = says.options.get("count").map(|count| count.parse().expect("a number"));
        let log = log.clone();
        let make = move |system: &SystemRef, number: usize| {
            let log = log.clone();
            let spawned = system.actor(&format!("made-{number}")).spawn(move || Worker {
                number,
                log: log.clone(),
                kept: Vec::new(),
            });
            spawned.map_err(|error| error.to_string())
        };
        Ok(Founder { count, make: Box::new(make) })
    };
    let system = TestSystem::builder()
        .configure(|builder| {
            let toml = r#"
                [deployment."/router".router]
                router = "founder"
                options = { count = 3 }
                [deployment."/again".router]
                router = "founder"
                options = { count = 1 }
                [deployment."/given".router]
                router = "founder"
                options = { count = 1 }
                routees.paths = ["/user/made-1"]
                [deployment."/unfounded".router]
                router = "founder"
            "#;
            builder.routing_logic::<Job, _>("founder", found).config(toml).unwrap()
        })
        .build();
    system.allow_running();
    let router = system.router("router").group_from_config::<Job>().spawn().unwrap();
    (0..5u64).for_each(|number| router.tell(number));
    assert_eq!(gone(&system, &got), [2; 5]);
    assert_eq!(router.routees().unwrap().len(), 3);
    // What it made are routees like others: one that ends is forgotten.
    let made = router.routees().unwrap().pop().unwrap();
    made.stop();
    system.run_until_idle();
    router.tell(1u64);
    assert_eq!(gone(&system, &got), [1]);
    // Paths that the section names come first, and a logic that makes none needs them.
    let given = system.router("given").group_from_config::<Job>().spawn().unwrap();
    given.tell(1u64);
    assert_eq!(gone(&system, &got), [1]);
    let error = system.router("unfounded").group_from_config::<Job>().spawn().unwrap_err();
    let SpawnError::Section { key, fault, .. } = error else { panic!("{error}") };
    assert_eq!(key, "deployment.\"/unfounded\".router.routees.paths");
    assert_eq!(fault, SectionFault::NoPaths { name: "founder".into() });
    // What it cannot make it says: another actor has the name.
    let error = system.router("again").group_from_config::<Job>().spawn().unwrap_err();
    let SpawnError::Section { fault: SectionFault::Refused { name, fault }, .. } = error else {
        panic!("{error}")
    };
    assert!(name == "founder" && fault.contains("made-0"), "{fault}");
    // The router stops none of them.
    router.stop();
    system.run_until_idle();
    assert!(system.living_actors() > 2);
    system.finish();
}

/// Knows the one who gets all messages, and needs no table.
struct Direct(ActorRef<Job>);

impl RoutingLogic<Job> for Direct {
    fn select(&self, _: &Job, _: &Routees<Job>, _: &RouteContext) -> Option<usize> {
        None
    }
    fn route(&self, job: Job, _: &Routees<Job>, cx: &RouteContext<'_>) -> Result<(), SendError<Job>> {
        cx.deliver(&self.0, job)
    }
    fn own_routees(&self, _: &SystemRef) -> Result<Option<Vec<ActorRef<Job>>>, String> {
        Ok(Some(Vec::new()))
    }
}

#[test]
fn a_logic_that_delivers_to_whom_it_knows_itself_makes_a_group_without_routees() {
    let (log, got) = channel();
    let target = ActorRef::from_fn(move |job: Job| {
        if let Job::Note(number) = job {
            let _ = log.send(number);
        }
    });
    let system = TestSystem::builder()
        .configure(move |builder| {
            let builder = builder.routing_logic::<Job, _>("direct", move |_| Ok(Direct(target.clone())));
            builder.config("[deployment.\"/router\".router]\nrouter = 'direct'").unwrap()
        })
        .build();
    let router = system.router("router").group_from_config::<Job>().spawn().unwrap();
    (0..3u64).for_each(|number| router.tell(number));
    assert_eq!(got.try_iter().collect::<Vec<_>>(), [0, 1, 2]);
    router.stop();
    system.run_until_idle();
    system.finish();
}

#[test]
fn a_name_that_nobody_gave_a_logic_is_refused_at_the_start_with_those_that_are_known() {
    let builder = || System::builder("names").routing_logic::<Job, _>("favourite", favourite);
    let toml = "[deployment.\"/a/*\".router]\nrouter = \"favorite\"";
    let Err(BuildError::ConfigKey { key, fault }) = builder().config(toml) else { panic!("it is accepted") };
    assert_eq!(key, "deployment.\"/a/*\".router.router");
    for known in
        ["\"favorite\"", "\"favourite\"", "\"from-code\"", "\"tail-chopping-group\"", "\"two-choices-pool\""]
    {
        assert!(fault.contains(known), "{fault}");
    }
    assert!(!fault.contains("balancing-group"), "{fault}");
    let built = builder().deploy("/a", Deployment::new().router(says("balancing-group"))).build();
    let Err(BuildError::Section { key, fault: SectionFault::Unknown { name, known } }) = built else {
        panic!("{built:?}")
    };
    assert_eq!((&*key, &*name), ("deployment.\"/a\".router.router", "balancing-group"));
    assert!(known.contains(&"favourite".to_owned()), "{known:?}");
    // Names lead to one logic each.
    for (name, message) in
        [("random-pool", "own kinds"), ("from-code", "own kinds"), ("", "empty"), ("favourite", "twice")]
    {
        let refused = builder().routing_logic::<Job, _>(name, favourite).build().unwrap_err();
        assert!(matches!(refused, BuildError::RoutingLogic { .. }), "{refused}");
        assert!(refused.to_string().contains(message), "{refused}");
    }
    assert!(builder().routing_logic::<u32, _>("favourite", favourite).build().is_ok());
}

#[test]
fn settings_in_code_are_checked_when_the_system_starts() {
    let resizer = DefaultResizer::new;
    let exploring = OptimalSizeExploringResizer::new;
    let new = RouterSettings::new;
    for (says, key, text) in [
        (new().within(Duration::ZERO), "within", "more than 0"),
        (new().interval(Duration::ZERO), "interval", "more than 0"),
        (new().virtual_nodes(0), "virtual-nodes", "from 1 to 65536"),
        (new().nr_of_instances(1 << 25), "nr-of-instances", "at most 16777216"),
        (new().resizer(resizer().lower_bound(20)), "resizer.upper-bound", "at least lower-bound, 20"),
        (
            new().resizer(resizer().backoff_threshold(1.5)),
            "resizer.backoff-threshold",
            "1.5: must be at most 1",
        ),
        (
            new().optimal_size_exploring_resizer(exploring().chance_of_exploration(2.0)),
            "optimal-size-exploring-resizer.chance-of-exploration",
            "2: must be at least 0 and at most 1",
        ),
        (
            new().resizer(resizer()).optimal_size_exploring_resizer(exploring().enabled(true)),
            "resizer",
            "a pool has one",
        ),
    ] {
        let refused =
            System::builder("checked").deploy("/a", Deployment::new().router(says)).build().unwrap_err();
        assert!(matches!(refused, BuildError::Section { .. }), "{refused}");
        let refused = refused.to_string();
        assert!(refused.starts_with(&format!("key `deployment.\"/a\".router.{key}`: ")), "{refused}");
        assert!(refused.contains(text), "{refused}");
    }
}

#[test]
fn names_and_paths_in_code_are_checked_when_the_system_starts_with_the_words_of_the_file() {
    let builder = || System::builder("checked").dispatcher("files", Dispatcher::blocking());
    let builder = || builder().dispatcher_alias("disk", "files").mailbox("small", Mailbox::bounded(2));
    let dispatchers =
        "no dispatcher is named \"none\": declare it, or choose one of [\"default\", \"disk\", \"files\"]";
    let (of, new) = (|says| Deployment::new().router(says), RouterSettings::new);
    for (says, toml, key, fault) in [
        (
            of(new().head_dispatcher("none")),
            "router.head-dispatcher = \"none\"",
            "router.head-dispatcher",
            dispatchers,
        ),
        (
            of(new().pool_dispatcher("none")),
            "router.pool-dispatcher = \"none\"",
            "router.pool-dispatcher",
            dispatchers,
        ),
        (Deployment::new().dispatcher("none"), "dispatcher = \"none\"", "dispatcher", dispatchers),
        (
            Deployment::new().mailbox("none"),
            "mailbox = \"none\"",
            "mailbox",
            "no mailbox is named \"none\": declare it, or choose one of [\"small\"]",
        ),
        (
            of(new().routees_paths(["/user/a", "/user/b c"])),
            "router.routees.paths = [\"/user/a\", \"/user/b c\"]",
            "router.routees.paths",
            "' '",
        ),
        (
            of(new().routees_paths(["pointsman://other/user/a"])),
            "router.routees.paths = [\"pointsman://other/user/a\"]",
            "router.routees.paths",
            "other",
        ),
    ] {
        let key = format!("deployment.\"/a\".{key}");
        let coded = builder().deploy("/a", says).build().unwrap_err();
        let BuildError::Section { key: at, fault: coded } = coded else { panic!("{coded}") };
        let toml = format!("[deployment.\"/a\"]\n{toml}");
        let Err(BuildError::ConfigKey { key: in_file, fault: read }) = builder().config(&toml) else {
            panic!("it is accepted: {toml}")
        };
        assert_eq!((&at, &in_file), (&key, &key));
        assert_eq!(coded.to_string(), read);
        assert!(read.contains(fault), "{read}");
    }
    // What exists, and any path of this system, whoever is there.
    let says = new().head_dispatcher("disk").pool_dispatcher("files").routees_paths([
        "/user/nobody",
        "../*",
        "pointsman://checked/user/a",
    ]);
    let deployment = of(says).dispatcher("default").mailbox("small");
    assert!(builder().deploy("/a", deployment).build().is_ok());
}

#[test]
fn a_file_is_refused_with_the_full_path_of_the_key_what_stands_there_and_what_may() {
    for (toml, key, text) in [
        ("nr-of-instances = \"boom\"", "deployment.\"/a\".router.nr-of-instances", "\"boom\""),
        ("nr-of-instances = -1", "deployment.\"/a\".router.nr-of-instances", "from 0 to 16777216"),
        ("instances = 1", "deployment.\"/a\".router.instances", "`nr-of-instances`"),
        ("virtual-nodes = 70000", "deployment.\"/a\".router.virtual-nodes", "from 1 to 65536"),
        ("within = \"0s\"", "deployment.\"/a\".router.within", "more than 0"),
        ("routees = { path = [] }", "deployment.\"/a\".router.routees.path", "`paths`"),
        ("head-dispatcher = \"none\"", "deployment.\"/a\".router.head-dispatcher", "[\"default\"]"),
        ("pool-dispatcher = \"none\"", "deployment.\"/a\".router.pool-dispatcher", "[\"default\"]"),
        ("pool-dispatcher = 3", "deployment.\"/a\".router.pool-dispatcher", "the name of a dispatcher"),
        (
            "pool-dispatcher = { threads = 0 }",
            "deployment.\"/a\".router.pool-dispatcher.threads",
            "from 1 to 1024",
        ),
        (
            "pool-dispatcher = { type = \"pinned\", threads = 2 }",
            "deployment.\"/a\".router.pool-dispatcher.threads",
            "\"pinned\"",
        ),
        (
            "pool-dispatcher = { type = \"blocking\", threads-min = 70 }",
            "deployment.\"/a\".router.pool-dispatcher.threads-min",
            "above threads-max 64",
        ),
        ("resizer = { lower-bound = \"x\" }", "deployment.\"/a\".router.resizer.lower-bound", "\"x\""),
        (
            "resizer = { lower-bound = 11 }",
            "deployment.\"/a\".router.resizer.upper-bound",
            "10: must be at least",
        ),
        ("resizer = { rampup-rate = nan }", "deployment.\"/a\".router.resizer.rampup-rate", "finite"),
        (
            "optimal-size-exploring-resizer = { optimization-range = 1 }",
            "deployment.\"/a\".router.optimal-size-exploring-resizer.optimization-range",
            "at least 2",
        ),
        (
            "resizer = {}\noptimal-size-exploring-resizer = {}",
            "deployment.\"/a\".router.resizer",
            "enabled = false",
        ),
        ("options = { x = [] }", "deployment.\"/a\".router.options.x", "a text, a number"),
    ] {
        let toml = format!("[deployment.\"/a\".router]\n{toml}");
        let Err(BuildError::ConfigKey { key: at, fault }) = System::builder("refused").config(&toml) else {
            panic!("it is accepted: {toml}")
        };
        assert_eq!(at, key, "{fault}");
        assert!(fault.contains(text), "{key}: {fault}");
    }
}

#[test]
fn the_file_wins_over_the_deployment_in_code_key_by_key_and_both_over_the_code() {
    let coded = RouterSettings::new().router("broadcast-pool").nr_of_instances(5).within(SECOND);
    let system = TestSystem::builder()
        .configure(|builder| {
            let toml = "[deployment.\"/router\".router]\nrouter = \"round-robin-pool\"";
            builder.deploy("/router", Deployment::new().router(coded)).config(toml).unwrap()
        })
        .build();
    system.allow_running();
    let (make, got) = workers();
    let router = system.router("router").pool(2, make).logic(Broadcast).spawn().unwrap();
    assert_eq!(router.routees().unwrap().len(), 5);
    router.tell(1u64);
    assert_eq!(gone(&system, &got).len(), 1);
    let printed = system.settings();
    for line in ["router = \"round-robin-pool\"", "nr-of-instances = 5", "within = \"1s\""] {
        assert!(printed.lines().any(|printed| printed == line), "{printed}");
    }
    system.finish();
}

#[test]
fn a_routers_section_is_found_by_pattern_and_does_not_concern_its_routees() {
    let system = reading(
        r#"
        [deployment."/shop/*".router]
        nr-of-instances = 2
        [deployment."/shop/fruit".router]
        nr-of-instances = 3
        [deployment."/weird".router]
        router = "round-robin-pool"
        nr-of-instances = 3
        [deployment."/weird/*".router]
        router = "round-robin-pool"
        nr-of-instances = 7
        "#,
    );
    let parent = system.actor("shop").spawn(Role::new("shop", &channel().0).recipe()).unwrap();
    let (make, got) = workers();
    let (log, made) = channel();
    for name in ["fruit", "bread"] {
        let (make, log) = (make.clone(), log.clone());
        act(&parent, move |_, ctx| Ok(log.send(ctx.router(name).pool(1, make).spawn()?)?));
    }
    system.run_until_idle();
    let sizes: Vec<usize> =
        made.try_iter().map(|router: Router<Job>| router.routees().unwrap().len()).collect();
    assert_eq!(sizes, [3, 2]);
    // As Akka's: the routees of `/weird` stay what they are.
    let weird = system.router("weird").pool(1, make).spawn().unwrap();
    assert_eq!(weird.routees().unwrap().len(), 3);
    (0..6u64).for_each(|number| weird.tell(number));
    assert_eq!(gone(&system, &got).len(), 6);
    system.finish();
}

#[test]
fn what_is_said_of_a_router_where_there_is_none_is_ignored_with_one_warning_for_each_section() {
    crate::logged::listen();
    let system = reading("[deployment.\"/plain-*\".router]\nrouter = \"random-pool\"");
    for name in ["plain-1", "plain-2"] {
        let role = Role::new("plain", &channel().0);
        let actor = system.actor(name).spawn(role.recipe()).unwrap();
        assert_eq!(query(&actor, |_, ctx| ctx.path().to_string()).unwrap(), format!("/user/{name}"));
    }
    let told = crate::logged::with("deployment.\"/plain-*\".router");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("/user/plain-1 is no router: "), "{told:?}");
    system.finish();
}

/// Answers with the name of the thread that it runs on.
struct Here;

struct Where;
impl Request for Where {
    type Reply = String;
}

impl Actor for Here {
    type Message = Call<Where>;
    fn receive(&mut self, call: Call<Where>, _: &mut Context<Call<Where>>) -> HandlerResult {
        call.answer(|Where| std::thread::current().name().unwrap_or_default().to_owned());
        Ok(())
    }
}

fn runs_on(router: &Router<Call<Where>>) -> String {
    router.ask(Where).wait().unwrap()
}

#[test]
fn a_routers_dispatcher_is_that_of_its_routees_unless_their_own_path_has_one() {
    let system = System::builder("trap")
        .config(
            r#"
            [dispatcher.default]
            threads = 1
            [dispatcher.one]
            type = "blocking"
            threads-max = 2
            [dispatcher.two]
            type = "blocking"
            threads-max = 2
            [deployment."/plain"]
            dispatcher = "one"
            [deployment."/plain".router]
            pool-dispatcher = "two"
            [deployment."/own"]
            dispatcher = "one"
            [deployment."/own/*"]
            dispatcher = "two"
            [deployment."/group"]
            dispatcher = "two"
            "#,
        )
        .unwrap()
        .build()
        .unwrap();
    let pool = |name: &str| system.router(name).pool(1, |_| Here).dispatcher("default").spawn().unwrap();
    let plain = pool("plain");
    assert!(runs_on(&plain).starts_with("trap-one"));
    assert!(runs_on(&pool("own")).starts_with("trap-two"));
    assert!(runs_on(&pool("unsaid")).starts_with("trap-default"));
    // The routees of a group run where they run.
    let foreign = system.actor("foreign").spawn(|| Here).unwrap();
    let group: Router<Call<Where>> = system.router("group").group([foreign]).spawn().unwrap();
    assert!(runs_on(&group).starts_with("trap-default"));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_routers_mailbox_and_stash_are_those_of_its_routees() {
    let system = TestSystem::builder()
        .configure(|builder| {
            let deployment = Deployment::new().mailbox("two").stash_capacity(1);
            builder.mailbox("two", Mailbox::bounded(2)).deploy("/router", deployment)
        })
        .build();
    system.allow_running();
    let (log, notes) = channel();
    let pool = system.router("router").pool(1, move |_| Role::new("routee", &log).recipe()());
    let router = pool.mailbox(Mailbox::unbounded()).spawn().unwrap();
    system.run_until_idle();
    let stash = |_: &mut Puppet, ctx: &mut Context<Tell>| -> HandlerResult {
        assert!(ctx.stash(noting("stashed")).is_ok());
        assert_eq!(ctx.stash(noting("stashed")).unwrap_err().capacity, 1);
        Ok(())
    };
    router.tell(Tell::new(stash));
    router.tell(noting("second"));
    assert!(router.try_tell(noting("third")).is_err(), "the mailbox holds two");
    system.run_until_idle();
    let notes: Vec<String> = notes.try_iter().filter(|note| note.contains("second")).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    router.stop();
    system.finish();
}

#[test]
fn a_dispatcher_for_one_pool_starts_with_the_system_and_is_for_routees_for_which_the_code_says_none() {
    let toml = r#"
        [dispatcher.default]
        threads = 1
        [dispatcher.other]
        type = "blocking"
        threads-max = 1
        [deployment."/pools/**".router]
        head-dispatcher = "other"
        [deployment."/pools/**".router.pool-dispatcher]
        type = "blocking"
        threads-max = 3
    "#;
    let system = System::builder("own").config(toml).unwrap().build().unwrap();
    let parent = system.actor("pools").spawn(Role::new("pools", &channel().0).recipe()).unwrap();
    let runs_in = |name: &'static str, dispatcher: Option<&'static str>| {
        let router = query(&parent, move |_, ctx| {
            let plan = ctx.router(name).pool(1, |_| Here);
            match dispatcher {
                Some(dispatcher) => plan.dispatcher(dispatcher).spawn().unwrap(),
                None => plan.spawn().unwrap(),
            }
        });
        runs_on(&router.unwrap())
    };
    let thread = runs_in("a", None);
    assert!(thread.starts_with("own-deployment./pools/**.pool-dispatcher"), "{thread}");
    let thread = runs_in("b", Some("default"));
    assert!(thread.starts_with("own-default"), "{thread}");
    // It prints as what it is, and changes key by key.
    let printed = system.settings();
    assert!(printed.contains("[dispatcher.\"deployment./pools/**.pool-dispatcher\"]"), "{printed}");
    let again = System::builder("own").config(&printed).unwrap().build().unwrap();
    assert_eq!(again.settings(), printed);
    let more = "[deployment.\"/pools/**\".router.pool-dispatcher]\nthreads-min = 2";
    let changed = System::builder("own").config(toml).unwrap().config(more).unwrap().build().unwrap();
    let changed = changed.settings();
    assert!(changed.contains("threads-min = 2\nthreads-max = 3"), "{changed}");
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_file_gives_a_pool_a_resizer_changes_it_and_takes_it_away() {
    let size = |says: RouterSettings, coded: bool| {
        let system = saying(says);
        let plan = system.router("router").pool(5, workers().0);
        let plan = if coded { plan.resizer(DefaultResizer::new().lower_bound(7)) } else { plan };
        let router = plan.spawn().unwrap();
        let first = router.routees().unwrap().len();
        router.resize_to(100).unwrap();
        let most = router.routees().unwrap().len();
        router.stop();
        system.finish();
        (first, most)
    };
    let new = RouterSettings::new;
    let (on, off) =
        (DefaultResizer::new().upper_bound(20), DefaultResizer::new().enabled(false).upper_bound(20));
    let exploring = OptimalSizeExploringResizer::new().lower_bound(6).upper_bound(30);
    assert_eq!(size(new(), false), (5, 100));
    assert_eq!(size(new(), true), (7, 10), "the coded one stays");
    assert_eq!(size(new().resizer(on.clone()), false), (4, 20), "a section without `enabled` is on");
    assert_eq!(size(new().resizer(on.clone()), true), (4, 20), "and takes the place of the coded one");
    assert_eq!(size(new().resizer(off.clone()), false), (5, 100), "no trap");
    assert_eq!(size(new().resizer(off.clone()), true), (5, 100), "the coded one is off, too");
    let system = System::builder("coded").build().unwrap();
    let by_default = system.router("a").pool(5, workers().0).resizer(off.clone()).spawn().unwrap();
    let measuring = exploring.clone().enabled(false);
    let measuring = system.router("b").pool(5, workers().0).resizer(measuring).spawn().unwrap();
    for router in [by_default, measuring] {
        assert_eq!(router.routees().unwrap().len(), 5, "as if there were none");
        router.resize_to(100).unwrap();
        assert_eq!(router.routees().unwrap().len(), 100);
    }
    assert_eq!(size(new().optimal_size_exploring_resizer(exploring.clone()), true), (6, 30));
    let both = |off: DefaultResizer| new().resizer(off).optimal_size_exploring_resizer(exploring.clone());
    assert_eq!(size(both(off), false), (6, 30));
    // It comes along with another logic.
    assert_eq!(size(says("random-pool"), true), (7, 10));
    assert_eq!(size(says("two-choices-pool").resizer(on.clone()), false), (4, 20));
    let system = saying(says("balancing-pool").resizer(on));
    let refused = system.router("router").pool(5, workers().0).spawn().unwrap_err();
    let fault = matches!(refused, SpawnError::ResizerOfSharedQueue { .. });
    assert!(fault, "{refused}");
}

#[test]
fn the_parameters_of_a_resizer_get_there() {
    let system = reading(
        r#"
        [deployment."/router".router.resizer]
        lower-bound = 2
        upper-bound = 40
        pressure-threshold = 0
        rampup-rate = 1
        backoff-threshold = 1.0
        backoff-rate = 0.5
        messages-per-resize = 1
        without-ticks = true
        "#,
    );
    let (make, _got) = workers();
    let router = system.router("router").pool(8, make).spawn().unwrap();
    let size = || {
        system.run_until_idle();
        router.routees().unwrap().len()
    };
    assert_eq!(size(), 4, "half of them go, as all are idle");
    system.advance(100 * SECOND);
    assert_eq!(size(), 4, "no ticks");
    // More than a turn's worth, so that all are busy when the head looks.
    for routee in router.routees().unwrap() {
        (0..1000u64).for_each(|number| routee.tell(number));
    }
    router.tell(1u64);
    assert_eq!(size(), 8, "all are busy, and one message is enough");
    router.stop();
    system.finish();
}

#[test]
fn the_head_follows_its_section_too() {
    // Stays when it is empty, and ends what takes too long.
    let system = reading(
        r#"
        [deployment."/router".router]
        nr-of-instances = 0
        stay-when-empty = true
        leave-within = "0s"
        "#,
    );
    let (make, got) = workers();
    let router = system.router("router").pool(4, make).spawn().unwrap();
    assert_eq!(router.routees().unwrap().len(), 0);
    router.resize_to(1).unwrap();
    (0..1000u64).for_each(|number| router.tell(number));
    router.resize_to(0).unwrap();
    let handled = gone(&system, &got).len();
    assert!(handled < 1000, "it ends after its current turn");
    assert!(!router.to_ref().is_closed());
    router.stop();
    let ledger = system.finish();
    assert_eq!(ledger.handled + ledger.dead_lettered, ledger.sent, "{ledger}");

    // Its dispatcher is the section's.
    let system = saying(RouterSettings::new().head_dispatcher("default"));
    pool(&system).head_dispatcher("none").spawn().unwrap().stop();
    system.finish();

    // What the code says is taken back.
    let system = saying(RouterSettings::new().stay_when_empty(false));
    let router = system.router("router").pool(1, workers().0).stay_when_empty().spawn().unwrap();
    let routee = router.routees().unwrap().remove(0);
    router.remove(&routee).unwrap();
    system.run_until_idle();
    assert!(router.to_ref().is_closed());
    system.finish();
}

#[test]
fn races_take_their_times_and_rules_from_the_section_whoever_chose_the_logic() {
    let routers = |says: RouterSettings, size: usize| {
        let named = [
            ("scatter-gather-pool", false),
            ("tail-chopping-pool", false),
            ("scatter", true),
            ("tail", true),
        ];
        named.map(|(name, coded)| {
            let says = if coded { says.clone() } else { says.clone().router(name) };
            let system = saying(says);
            let (make, got) = workers();
            let plan = system.router("router").pool(size, make);
            let router = match name {
                "scatter" => plan.logic(ScatterGatherFirstCompleted::within(9 * SECOND)).spawn(),
                "tail" => plan.logic(TailChopping::within(9 * SECOND)).spawn(),
                _ => plan.answerable().spawn(),
            };
            (name, system, router.unwrap(), got)
        })
    };
    for (name, system, router, _got) in routers(RouterSettings::new().within(100 * MS), 1) {
        let asked = router.ask(KEEP);
        system.run_until_idle();
        system.advance(99 * MS);
        assert_eq!(system.ledger().asks.pending(), 1, "{name}");
        system.advance(2 * MS);
        assert!(matches!(asked.wait(), Err(AskError::Timeout { .. })), "{name}");
    }
    for (name, system, router, _got) in routers(RouterSettings::new(), 1) {
        assert!(matches!(system.ask(&router, REFUSE), Err(AskError::AllFailed { .. })), "{name}");
    }
    for (name, system, router, _got) in routers(RouterSettings::new().first_completion(true), 1) {
        assert_eq!(system.ask(&router, REFUSE).unwrap(), 0, "{name}");
    }
    let paced = RouterSettings::new().interval(SECOND);
    for (is_waiting, expected) in [(false, [3, 0]), (true, [1, 1])] {
        for (name, system, router, got) in routers(paced.clone().wait_for_tick(is_waiting), 3) {
            if name.starts_with("scatter") {
                continue;
            }
            let asked = router.ask(REFUSE);
            let at_once = gone(&system, &got).len();
            system.advance(SECOND + 2 * MS);
            assert_eq!([at_once, gone(&system, &got).len()], expected, "{name}");
            drop(asked);
        }
    }
    for (name, system, router, got) in routers(paced, 3) {
        if name.starts_with("tail") {
            let asked = router.ask(KEEP);
            system.advance(990 * MS);
            assert_eq!(gone(&system, &got).len(), 1, "{name}");
            system.advance(20 * MS);
            assert_eq!(gone(&system, &got).len(), 1, "{name}");
            drop(asked);
        }
    }
}

#[test]
fn akkas_word_for_virtual_nodes_is_understood() {
    let toml = "[deployment.\"/a\".router]\nvirtual-nodes-factor = 7";
    let coded = Deployment::new().router(RouterSettings::new().virtual_nodes(3));
    for builder in [System::builder("words"), System::builder("words").deploy("/a", coded)] {
        let printed = builder.config(toml).unwrap().build().unwrap().settings();
        assert!(printed.contains("\nvirtual-nodes = 7\n"), "{printed}");
    }
}

#[test]
fn all_that_is_said_of_routers_prints_and_reads_again() {
    let says = RouterSettings::new()
        .router("random-pool")
        .nr_of_instances(3)
        .within(SECOND)
        .virtual_nodes(9)
        .interval(3 * MS)
        .first_completion(true)
        .wait_for_tick(false)
        .routees_paths(["/user/a", "../b*"])
        .head_dispatcher("default")
        .pool_dispatcher("default")
        .leave_within(2 * SECOND)
        .stay_when_empty(true)
        .resizer(
            DefaultResizer::new()
                .enabled(false)
                .lower_bound(0)
                .upper_bound(4)
                .pressure_threshold(2)
                .rampup_rate(0.25)
                .backoff_threshold(0.5)
                .backoff_rate(1.0)
                .messages_per_resize(11)
                .tick_interval(SECOND)
                .without_ticks(true),
        )
        .optimal_size_exploring_resizer(
            OptimalSizeExploringResizer::new()
                .enabled(true)
                .lower_bound(2)
                .upper_bound(5)
                .chance_of_ramping_down_when_full(0.125)
                .action_interval(SECOND)
                .downsize_after_underutilized_for(7 * SECOND)
                .explore_step_size(0.5)
                .chance_of_exploration(0.0)
                .downsize_ratio(1.0)
                .optimization_range(4)
                .weight_of_latest_metric(0.75),
        )
        .option("copies", 3);
    let deployment = Deployment::new().router(says);
    let system = System::builder("all").deploy("/a", deployment).build().unwrap();
    let printed = system.settings();
    // The number of keys of all three structures.
    let section =
        printed.split("[deployment.\"/a\".router]").nth(1).unwrap().split("[shutdown]").next().unwrap();
    assert_eq!(
        section.lines().filter(|line| line.contains(" = ")).count(),
        11 + 1 + 10 + 11 + 1,
        "{section}"
    );
    let again = System::builder("all").config(&printed).unwrap().build().unwrap();
    assert_eq!(again.settings(), printed);
}

#[test]
fn a_boxed_logic_is_the_logic_in_it() {
    let system = TestSystem::new();
    system.allow_running();
    let boxed: [(&str, Box<dyn RoutingLogic<Job>>); 3] = [
        ("broadcast", Box::new(Broadcast)),
        ("consistent-hashing", Box::new(ConsistentHashing::new())),
        ("tail-chopping", Box::new(TailChopping::new())),
    ];
    for (name, logic) in boxed {
        assert_eq!(logic.name(), Some(name));
        let (make, got) = workers();
        let router = system.router("router").pool(3, make).logic(logic).spawn().unwrap();
        assert_eq!(seen(&system, &router, &got), name);
        router.stop();
        system.run_until_idle();
    }
    let wrong: Box<dyn RoutingLogic<Job>> = Box::new(TailChopping::within(Duration::ZERO));
    let refused = pool(&system).logic(wrong).spawn().unwrap_err();
    assert!(matches!(refused, SpawnError::Logic { .. }), "{refused}");
    system.finish();
}

#[test]
fn whoever_makes_a_named_logic_may_panic_and_leaves_nothing_behind() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let system = TestSystem::builder()
        .configure(|builder| {
            let make = |_: &RouterSettings| {
                assert_ne!(CALLS.fetch_add(1, SeqCst), 0, "planted");
                Ok(Favourite(0))
            };
            builder
                .routing_logic::<Job, _>("fragile", make)
                .deploy("/router", Deployment::new().router(says("fragile")))
        })
        .build();
    system.allow_running();
    let living = system.living_actors();
    assert!(panic_of(|| drop(pool(&system).spawn())).contains("planted"));
    assert_eq!(system.living_actors(), living);
    assert!(pool(&system).spawn().is_ok());
    system.finish();
}
