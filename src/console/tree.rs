//! The page `/tree.dot`: the tree of actors, for Graphviz.

use crate::telemetry::actor_filter::{ActorState, ActorStats};
use std::collections::HashMap;
use std::fmt::Write;

/// Returns the page. Of an actor whose parent is not among `actors` no line leads upward.
pub(crate) fn page(system: &str, actors: &[ActorStats]) -> String {
    let mut page = String::new();
    let _ = write!(
        page,
        "digraph {} {{\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n",
        quoted(system)
    );
    let uids: HashMap<&str, u32> = actors.iter().map(|actor| (actor.path.as_str(), actor.uid)).collect();
    for actor in actors {
        let path = actor.path.as_str();
        let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("/");
        let colour = match actor.state {
            ActorState::Idle => "black",
            ActorState::Busy => "darkgreen",
            ActorState::Suspended => "orange",
            ActorState::Closed => "gray",
        };
        let label = format!("{name}\n{}\n{} queued, {} handled", actor.class, actor.queued, actor.handled);
        let _ = writeln!(
            page,
            "  a{} [label={}, tooltip={}, color={colour}];",
            actor.uid,
            quoted(&label),
            quoted(path)
        );
    }
    for actor in actors {
        let path = actor.path.as_str();
        let Some((parent, _)) = path.rsplit_once('/').filter(|_| path != "/") else { continue };
        if let Some(parent) = uids.get(if parent.is_empty() { "/" } else { parent }) {
            let _ = writeln!(page, "  a{parent} -> a{};", actor.uid);
        }
    }
    page.push_str("}\n");
    page
}

/// Returns the text as a string of Graphviz, in which a backslash begins an escape.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
