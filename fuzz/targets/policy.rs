//! The policy of a node: patterns of paths, rules, and what may come in.
//!
//! The input is lines of text: patterns with spaces between them, peers of a rule, a path or selection; and the first byte chooses
//! the base and the sort of actor. The following must hold:
//! - A pattern or peers that are refused are refused where they are wrong, by an error of one line.
//! - A closed policy lets in what a plain matcher of patterns finds in its list, and no wildcards.
//! - Strict paths let in nothing more than a closed policy, and a closed one nothing more than an open one.
//! - Nothing of a peer gets below `/system` or `/temp` by a pattern that does not name them.
//! - No peer deploys what is not listed, and an answer always comes in.

use pointsman::remote::fuzz_hooks::{INCOMING_KINDS, is_allowed, is_canonical_selection};
use pointsman::remote::{Policy, PolicyError};

pub fn check(data: &[u8]) {
    let (sort, data) = data.split_first().map_or((0, data), |(first, rest)| (*first, rest));
    let text = String::from_utf8_lossy(data);
    let mut lines = text.split('\n');
    let (patterns, peers, path) =
        (lines.next().unwrap_or(""), lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let patterns: Vec<&str> = patterns.split(' ').filter(|pattern| is_pattern(pattern)).collect();
    let listed = |base: Policy| patterns.iter().fold(base, |policy, pattern| policy.allow_path(pattern));
    let (closed, strict, open) =
        (listed(Policy::closed()), listed(Policy::closed().strict_paths()), listed(Policy::open()));
    assert_eq!(closed.check(), Ok(()));
    let may = |policy: &Policy, kind, sort| is_allowed(policy, "n1", &[], kind, path, sort);
    for kind in 0..INCOMING_KINDS {
        let by_policy = [may(&strict, kind, sort), may(&closed, kind, sort), may(&open, kind, sort)];
        assert!(by_policy.is_sorted(), "{kind} {path:?}: {by_policy:?}");
        // The sort of an actor only adds.
        for policy in [&strict, &closed, &open] {
            assert!(may(policy, kind, sort) || !may(policy, kind, 0), "{kind} {path:?}");
        }
    }
    let is_listed = patterns.iter().any(|pattern| matches(pattern, path));
    let is_private = ["/system", "/temp"].iter().any(|top| path == *top || path.starts_with(&format!("{top}/")));
    let has_mark = |mark: &str| path.contains(mark);
    assert!(!may(&open, 6, sort) && may(&strict, 7, 0));
    if !has_mark("#") {
        let is_exact = is_canonical_selection(path) && !has_mark("*") && !has_mark("?");
        assert_eq!(may(&closed, 2, 0), is_exact && is_listed, "{path:?}");
        assert_eq!(may(&closed, 2, 0), may(&closed, 3, 0));
        assert_eq!(may(&open, 2, 0), is_canonical_selection(path));
        if path.starts_with('/') {
            assert_eq!(may(&strict, 0, 0), is_listed, "{path:?}");
            assert_eq!(may(&closed, 0, 0), is_listed || !is_private, "{path:?}");
        }
    }
    rule(&closed, peers);
}

/// Whether the policy takes it as a pattern. A refusal has its place in the text.
fn is_pattern(text: &str) -> bool {
    match Policy::closed().allow_path(text).check() {
        Ok(()) => true,
        Err(PolicyError::Path(error)) => {
            assert_eq!(error.path, text);
            assert!(text.is_char_boundary(error.position), "{error}");
            assert!(!error.to_string().contains('\n'));
            false
        }
        Err(other) => panic!("{text:?}: {other}"),
    }
}

fn rule(policy: &Policy, peers: &str) {
    let with_rule = policy.clone().rule(peers, Policy::open());
    let is_open_for =
        |node: &str, role: &str| is_allowed(&with_rule, node, &[role.to_owned()], 2, "/user/*", 0);
    match with_rule.check() {
        Ok(()) => match peers.strip_prefix("role:") {
            Some(role) => {
                assert!(is_open_for("n", role));
                assert!(role == "other" || !is_open_for("n", "other"));
            }
            None => {
                assert!(is_open_for(peers, "r"));
                assert!(peers == "other" || !is_open_for("other", "r"));
            }
        },
        Err(error) => {
            assert_eq!(error, PolicyError::Peers { peers: peers.to_owned() });
            assert!(!error.to_string().contains('\n'));
            assert!(!is_open_for("n1", "r"));
        }
    }
}

/// A plain matcher: name by name, from the right sides of both.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<&str>, Vec<&str>) =
        (pattern.split('/').skip(1).collect(), path.split('/').skip(1).collect());
    if matches!(path.first(), Some(&("system" | "temp"))) && pattern.first() != path.first() {
        return false;
    }
    match pattern.split_last() {
        Some((&"**", before)) => path.len() > before.len() && names_match(before, &path[..before.len()]),
        _ => pattern.len() == path.len() && names_match(&pattern, &path),
    }
}

fn names_match(pattern: &[&str], names: &[&str]) -> bool {
    pattern.iter().zip(names).all(|(pattern, name)| match pattern.split_once('*') {
        Some((prefix, "")) => name.starts_with(prefix),
        _ => pattern == name,
    })
}
