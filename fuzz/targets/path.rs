//! Paths of actors, addresses of systems, and selections.
//!
//! The input is lines of text: a path, what is joined to it, and another path to compare it with; each of them is
//! read as an address and as a selection, too. What must hold:
//! - What is accepted and printed is read as it was; what is refused is refused where it stands.
//! - Joining, going up and comparing are what they are for lists of names.
//! - A path that is canonical has one text, is not longer or deeper than it may be, and is read by all as it is written.
//! - A selection reaches whom a plain walk over the tree of names reaches.

use pointsman::prelude::*;
use pointsman::testkit::TestSystem;
use pointsman::ActorPath;
use pointsman::path::{PathError, PathFault, SystemAddress};
use pointsman::remote::fuzz_hooks::{canonical, is_canonical_selection};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::mem::ManuallyDrop;

/// One system serves so many inputs: it remembers whose turn it was.
const INPUTS_MAX: usize = 1000;

/// Below `/user`: names that look like patterns are names all the same.
const TREE: [&str; 9] = ["a", "a/a", "a/b", "a/b/c", "ab", "ab/b", "*", "b-1", "b-1/%2f"];

pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default();
    let (first, second, third) = (next(), next(), next());
    let first_path = read(first);
    if let Some(path) = &first_path {
        join(path, second);
    }
    if let (Some(one), Some(other)) = (first_path, read(third)) {
        compare(&one, &other);
    }
    for text in [first, second, third] {
        address(text);
        one_form(text);
    }
    address_of_parts(first, second);
    STAGE.with(|stage| {
        let mut stage = stage.borrow_mut();
        if stage.inputs == INPUTS_MAX {
            std::mem::replace(&mut *stage, Stage::new()).end();
        }
        stage.inputs += 1;
        for text in [first, second, third] {
            stage.select(text);
        }
    });
}

fn read(text: &str) -> Option<ActorPath> {
    let path = text.parse::<ActorPath>().map_err(|error| refused(text, &error)).ok()?;
    let again: ActorPath = path.serialized().parse().expect("it is printed as a path");
    assert_eq!((&again, again.uid()), (&path, path.uid()));
    assert_eq!(path.to_string().parse::<ActorPath>().expect("it is a path, too"), path);
    let names: Vec<&str> = path.elements().collect();
    assert_eq!(path.as_str(), format!("/{}", names.join("/")));
    assert_eq!(path.name(), names.last().copied().unwrap_or_default());
    assert!(names.iter().all(|name| *name != ".."));
    let up = path.parent();
    assert_eq!(up.elements().collect::<Vec<_>>(), names[..names.len().saturating_sub(1)]);
    assert_eq!((up.address(), up.uid()), (path.address(), None));
    assert_eq!(path.join("..").as_ref(), Ok(&up));
    assert_eq!(path.join(&path.to_string()).as_ref(), Ok(&path));
    Some(path)
}

fn join(base: &ActorPath, relative: &str) {
    let joined = match base.join(relative) {
        Ok(joined) => joined,
        Err(error) => return refused(relative, &error),
    };
    let absolute = relative.parse::<ActorPath>();
    if let Ok(absolute) = &absolute {
        let address = absolute.address().or(base.address());
        let names: Vec<&str> = absolute.elements().collect();
        assert_eq!(joined.elements().collect::<Vec<_>>(), names);
        assert_eq!((joined.address(), joined.uid()), (address, absolute.uid()));
        return;
    }
    let mut names: Vec<&str> = base.elements().collect();
    let plain = relative.split('#').next().unwrap_or_default();
    for name in plain.split('/').filter(|name| !name.is_empty()) {
        match name {
            ".." => _ = names.pop(),
            name => names.push(name),
        }
    }
    assert_eq!(joined.elements().collect::<Vec<_>>(), names);
    assert_eq!(joined.address(), base.address());
}

fn compare(one: &ActorPath, other: &ActorPath) {
    let order = one.cmp(other);
    assert_eq!(order.is_eq(), one == other);
    assert_eq!(order, other.cmp(one).reverse());
    let reversed = |path: &ActorPath| path.elements().rev().map(str::to_owned).collect::<Vec<_>>();
    if one.address() == other.address() {
        assert_eq!(order, reversed(one).cmp(&reversed(other)));
    }
}

fn address(text: &str) {
    match text.parse::<SystemAddress>() {
        Ok(address) => {
            assert_eq!(address.to_string().parse::<SystemAddress>().as_ref(), Ok(&address));
            let path: ActorPath = format!("{address}/user/x").parse().expect("an address goes before a path");
            assert_eq!((path.address(), path.as_str()), (Some(&address), "/user/x"));
        }
        Err(error) => refused(text, &error),
    }
}

fn one_form(text: &str) {
    let lenient = text.parse::<ActorPath>();
    match canonical(text) {
        Ok(path) => {
            assert_eq!((path.serialized().as_str(), Ok(&path)), (text, lenient.as_ref()));
            let names: Vec<&str> = path.elements().collect();
            assert!((1..=32).contains(&names.len()) && path.as_str().len() <= 1024);
            assert!(path.uid().is_some() || names.iter().all(|name| !name.starts_with('$')));
            assert!(is_canonical_selection(path.as_str()) || path.uid().is_some());
        }
        Err(error) => {
            refused(text, &error);
            // A path that is read leniently and refused here has another form, no name, or is too large.
            if let Ok(path) = lenient {
                let names = path.elements().count();
                let is_generated = path.uid().is_none() && path.elements().any(|name| name.starts_with('$'));
                let is_large = path.as_str().len() > 1024 || names > 32;
                assert!(path.serialized() != text || names == 0 || is_generated || is_large, "{error}");
            }
        }
    }
}

fn address_of_parts(system: &str, host: &str) {
    if let Ok(address) = SystemAddress::local(system) {
        assert_eq!((address.system(), address.host(), address.port()), (system, None, None));
    }
    if let Ok(address) = SystemAddress::remote(system, host, 7) {
        assert_eq!((address.system(), address.host(), address.port()), (system, Some(host), Some(7)));
        assert_eq!(address.to_string().parse::<SystemAddress>().as_ref(), Ok(&address));
    }
}

/// An error is about this text, and names a place in it where its part stands.
fn refused(text: &str, error: &PathError) {
    assert_eq!(error.path, text);
    let rest = text.get(error.position..).unwrap_or_else(|| panic!("no place: {error}"));
    match error.fault {
        PathFault::Character { character } => {
            assert!(rest.starts_with(character) && error.element.contains(character), "{error}");
        }
        _ => assert!(rest.starts_with(&error.element), "{error}"),
    }
    assert!(!error.to_string().is_empty());
}

thread_local! {
    /// Not dropped with the thread, whose other locals may be gone by then.
    static STAGE: ManuallyDrop<RefCell<Stage>> = ManuallyDrop::new(RefCell::new(Stage::new()));
}

struct Stage {
    system: TestSystem,
    inputs: usize,
}

/// Its path below `/user`. Makes what is below it.
struct Node(&'static str);

impl Actor for Node {
    type Message = u8;
    fn receive(&mut self, _: u8, _: &mut Context<u8>) -> HandlerResult {
        Ok(())
    }
    fn started(&mut self, ctx: &mut Context<u8>) -> HandlerResult {
        for path in TREE {
            if let Some((parent, name)) = path.rsplit_once('/') {
                if parent == self.0 {
                    ctx.actor(name).spawn(move || Node(path))?;
                }
            }
        }
        Ok(())
    }
}

impl Stage {
    fn new() -> Self {
        let system = TestSystem::builder().seed(1).build();
        for path in TREE.into_iter().filter(|path| !path.contains('/')) {
            system.actor(path).spawn(move || Node(path)).expect("the name is free");
        }
        system.run_until_idle();
        Self { system, inputs: 0 }
    }

    fn end(self) {
        self.system.allow_running();
        let ledger = self.system.finish();
        assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
    }

    fn select(&self, text: &str) {
        let selection = match self.system.select(text) {
            Ok(selection) => selection,
            Err(error) => return refused(text, &error),
        };
        let again = self.system.select(&selection.to_string()).expect("it is printed as a selection");
        assert_eq!(again.to_string(), selection.to_string());
        assert_eq!(again.has_wildcard(), selection.has_wildcard());
        let delivered = selection.tell(1u8);
        let reached = delivered.reached + delivered.other_type.len();
        assert!(delivered.missing.is_none() || reached == 0);
        self.system.run_until_idle();
        assert_eq!(self.system.ledger().balance(), 0);
        if let Some(expected) = walk(text) {
            assert_eq!(reached, expected.len(), "{text:?} should reach {expected:?}");
        }
    }
}

/// Those whom a selection reaches: paths below `/user`, `None` for the root. No answer if the text names an
/// incarnation, or whatever else stands below the root.
fn walk(text: &str) -> Option<BTreeSet<Option<String>>> {
    let text = text.strip_prefix("pointsman://test").unwrap_or(text);
    if text.contains('#') {
        return None;
    }
    let mut reached: BTreeSet<Option<String>> = BTreeSet::from([None]);
    for element in text.split('/').filter(|element| !element.is_empty()) {
        let mut next = BTreeSet::new();
        for at in reached {
            match (at, element) {
                (None, "..") => _ = next.insert(None),
                (None, "user") => _ = next.insert(Some(String::new())),
                (None, _) => return None,
                (Some(path), "..") if path.is_empty() => _ = next.insert(None),
                (Some(path), "..") => {
                    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
                    next.insert(Some(parent.to_owned()));
                }
                (Some(path), pattern) => {
                    let below = |child: &&&str| match child.rsplit_once('/') {
                        Some((parent, name)) => parent == path && matches(pattern, name),
                        None => path.is_empty() && matches(pattern, child),
                    };
                    next.extend(TREE.iter().filter(below).map(|child| Some(child.to_string())));
                }
            }
        }
        reached = next;
    }
    Some(reached)
}

fn matches(pattern: &str, name: &str) -> bool {
    match (pattern.chars().next(), name.chars().next()) {
        (None, None) => true,
        (Some('*'), _) => {
            (0..=name.len()).any(|from| matches(pattern[1..].trim_start_matches('*'), &name[from..]))
        }
        (Some('?'), Some(_)) => matches(&pattern[1..], &name[1..]),
        (Some(one), Some(other)) => one == other && matches(&pattern[1..], &name[1..]),
        _ => false,
    }
}
