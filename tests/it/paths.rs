//! Paths as text, their order, and actors found by them.

use crate::support::*;
use pointsman::path::{PathError, PathFault, SystemAddress};
use pointsman::selection::LookupError;
use pointsman::{ActorPath, SpawnError};
use std::collections::HashSet;

fn path(text: &str) -> ActorPath {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn paths_are_read_and_written_with_and_without_address_and_uid() {
    for (text, written, serialized) in [
        ("/", "/", "/"),
        ("/user/a", "/user/a", "/user/a"),
        ("/user/a#17", "/user/a", "/user/a#17"),
        ("//user///a/", "/user/a", "/user/a"),
        ("/user/a/../b/$a", "/user/b/$a", "/user/b/$a"),
        ("/../..", "/", "/"),
        ("pointsman://shop", "pointsman://shop/", "pointsman://shop/"),
        ("pointsman://shop/user/a", "pointsman://shop/user/a", "pointsman://shop/user/a"),
        (
            "pointsman://shop@10.0.0.7:25520/user/a#4294967295",
            "pointsman://shop@10.0.0.7:25520/user/a",
            "pointsman://shop@10.0.0.7:25520/user/a#4294967295",
        ),
        ("pointsman://s-1_b@[::1]:0/a", "pointsman://s-1_b@[::1]:0/a", "pointsman://s-1_b@[::1]:0/a"),
        // A colon may stand in a name.
        ("/user/a:/b", "/user/a:/b", "/user/a:/b"),
        ("/user/a%2Fb", "/user/a%2Fb", "/user/a%2Fb"),
    ] {
        let path = path(text);
        assert_eq!(path.to_string(), written, "{text}");
        assert_eq!(path.serialized(), serialized, "{text}");
        assert_eq!(path.serialized().parse::<ActorPath>().unwrap(), path);
        assert_eq!(path.serialized().parse::<ActorPath>().unwrap().uid(), path.uid());
    }
    let there = path("pointsman://shop@example.org:25520/user/a");
    let address = there.address().unwrap();
    assert_eq!(
        (address.system(), address.host(), address.port()),
        ("shop", Some("example.org"), Some(25520))
    );
    assert_eq!(*address, SystemAddress::remote("shop", "example.org", 25520).unwrap());
    assert_eq!(there, path("/user/a").with_address(address.clone()));
}

#[test]
fn a_text_that_is_no_path_is_refused_with_the_part_and_its_position() {
    let character = |character| PathFault::Character { character };
    for (text, element, position, fault) in [
        ("", "", 0, PathFault::Empty),
        ("user/a", "user/a", 0, PathFault::Relative),
        ("akka://shop/user", "akka", 0, PathFault::Scheme),
        ("pointsman:///user", "", 12, PathFault::System),
        ("pointsman://-s/user", "-s", 12, character('-')),
        ("pointsman://sh.p/user", "sh.p", 14, character('.')),
        ("pointsman://shop@/user", "", 17, PathFault::Node),
        ("pointsman://shop@:1/user", "", 17, PathFault::Host),
        ("pointsman://shop@a b:1/user", "a b", 18, character(' ')),
        ("pointsman://shop@[::g]:1/user", "[::g]", 20, character('g')),
        ("pointsman://shop@example.org/user", "example.org", 17, PathFault::Node),
        ("pointsman://shop@host:65536/user", "65536", 22, PathFault::Port),
        ("pointsman://shop@host:+1/user", "+1", 22, PathFault::Port),
        ("/user/a b", "a b", 7, character(' ')),
        ("/user//é", "é", 7, character('é')),
        ("/user/w?", "w?", 7, character('?')),
        ("pointsman://shop/user/50%", "50%", 24, character('%')),
        ("/user/a#", "", 8, PathFault::Uid),
        ("/user/a#0", "0", 8, PathFault::Uid),
        ("/user/a#-1", "-1", 8, PathFault::Uid),
        ("/user/a#1/b", "1/b", 8, PathFault::Uid),
    ] {
        let error = text.parse::<ActorPath>().expect_err(text);
        assert_eq!(
            (error.path.as_str(), error.element.as_str(), error.position, error.fault),
            (text, element, position, fault)
        );
    }
    assert_eq!(
        "/user/a b".parse::<ActorPath>().unwrap_err().to_string(),
        "invalid path \"/user/a b\": character ' ' at byte 7 is not allowed in \"a b\", use ASCII letters, digits, \
         or signs that are allowed there"
    );
    assert!("pointsman://shop/user".parse::<SystemAddress>().is_err());
    assert!(SystemAddress::local("shop/user").is_err());
    let remote = SystemAddress::local("shop@example.org:25520").unwrap_err();
    assert_eq!((remote.position, remote.fault), (16, PathFault::Character { character: '@' }));
    assert!(SystemAddress::remote("shop", "", 1).is_err());
}

#[test]
fn a_relative_path_is_joined_to_its_base() {
    let base = path("pointsman://shop/user/a/b#9");
    for (relative, joined) in [
        ("c", "pointsman://shop/user/a/b/c"),
        ("..", "pointsman://shop/user/a"),
        ("../c/d/", "pointsman://shop/user/a/c/d"),
        ("../../../../x", "pointsman://shop/x"),
        ("/system/x", "pointsman://shop/system/x"),
        ("pointsman://other/x", "pointsman://other/x"),
    ] {
        let joined_path = base.join(relative).unwrap();
        assert_eq!(joined_path.to_string(), joined, "{relative}");
        assert_eq!(joined_path.uid(), None, "a uid is that of the base alone");
    }
    assert_eq!(base.join("c#3").unwrap().uid(), Some(3));
    assert_eq!(path("/").join("a").unwrap(), path("/a"));
    assert_eq!(base.join("").unwrap_err().fault, PathFault::Empty);
    assert_eq!(base.join("../b c").unwrap_err().position, 4);
    assert_eq!(base.parent().to_string(), "pointsman://shop/user/a");
    assert_eq!(path("/").parent(), path("/"));
    assert_eq!(base.name(), "b");
    assert_eq!(base.elements().collect::<Vec<_>>(), ["user", "a", "b"]);
}

#[test]
fn paths_compare_without_the_uid_and_from_the_last_name_to_the_first() {
    assert_eq!(path("/user/a#1"), path("/user/a#2"));
    assert_eq!(HashSet::from([path("/user/a#1"), path("/user/a"), path("/user/a/")]).len(), 1);
    assert_ne!(path("/user/a"), path("pointsman://shop/user/a"));
    let mut paths: Vec<ActorPath> = [
        "/user/b/a",
        "/user/a/b",
        "/user/z",
        "/",
        "/b/a",
        "pointsman://t/b/a",
        "pointsman://s/b/a",
        "/system/b/a",
        "/a",
    ]
    .map(path)
    .into();
    paths.sort();
    let sorted: Vec<String> = paths.iter().map(ToString::to_string).collect();
    assert_eq!(
        sorted,
        [
            "/",
            "/a",
            "/b/a",
            "pointsman://s/b/a",
            "pointsman://t/b/a",
            "/system/b/a",
            "/user/b/a",
            "/user/a/b",
            "/user/z"
        ]
    );
    // Names are compared as wholes: `-` is smaller than `/`.
    assert!(path("/a/x") < path("/a-/x"));
}

#[test]
fn nobody_can_be_named_like_the_way_up() {
    let stage = Stage::turns();
    let refused = stage.system.actor("..").spawn(stage.role("a").recipe());
    assert!(matches!(refused, Err(SpawnError::Name(_))), "{refused:?}");
    stage.end(&[]);
}

#[test]
fn an_actor_is_found_by_its_path() {
    let stage = Stage::turns();
    let system = &stage.system;
    let parent = stage.spawn(&stage.role("p"));
    let role = stage.role("nameless");
    let inner = query(&parent, move |_, ctx| ctx.spawn(role.recipe()).unwrap()).unwrap();
    let here = system.address().to_string();
    for text in ["/user/p/$a", "user/p/$a", "/user//p/x/../$a/", &format!("{here}/user/p/$a")] {
        assert_eq!(system.actor_at(text), Ok(inner.untyped().unwrap()), "{text}");
        assert_eq!(system.typed_at::<Tell>(text), Ok(inner.clone()), "{text}");
    }
    assert_eq!(system.actor_at("/user"), Ok(system.user().unwrap()));
    assert_eq!(system.actor_at("/").unwrap().path().to_string(), "/");
    assert_eq!(system.actor_at("/temp").unwrap().path().to_string(), "/temp");
    assert_eq!(system.actor_at(&inner.path().serialized()), Ok(inner.untyped().unwrap()));

    let missing = system.actor_at("/user/p/q");
    assert_eq!(missing, Err(LookupError::NoActor { path: path("/user/p/q") }));
    assert_eq!(
        missing.unwrap_err().to_string(),
        "no actor at /user/p/q: create it first, or check the names"
    );
    let other = path("/user/p").with_uid(parent.uid() + 1000);
    assert_eq!(
        system.actor_at(&other.serialized()),
        Err(LookupError::OtherIncarnation { path: other, found: parent.uid() })
    );
    match system.typed_at::<u32>("/user/p") {
        Err(LookupError::WrongType(error)) => {
            assert!(error.takes.contains("Tell") && error.wanted == "u32", "{error:?}");
        }
        other => panic!("{other:?}"),
    }
    for elsewhere in
        ["pointsman://other/user/p", "pointsman://found@host:1/user/p", "pointsman://found@n2/user/p"]
    {
        let error = system.actor_at(elsewhere).unwrap_err();
        assert!(
            matches!(error, LookupError::Path(PathError { fault: PathFault::Elsewhere, .. })),
            "{elsewhere}: {error}"
        );
    }
    assert!(matches!(system.actor_at("/user/a b"), Err(LookupError::Path(_))));
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn an_actor_finds_others_from_where_it_stands() {
    let stage = Stage::turns();
    let parent = stage.spawn(&stage.role("p"));
    let (left, right) = (child(&parent, &stage.role("left")), child(&parent, &stage.role("right")));
    let found = query(&left, |_, ctx| {
        (
            ctx.actor_at("../right").unwrap(),
            ctx.typed_at::<Tell>("..").unwrap(),
            ctx.actor_at("/user/p/left").unwrap(),
            ctx.typed_at::<u32>("../right").unwrap_err(),
            ctx.actor_at("child").unwrap_err(),
        )
    })
    .unwrap();
    assert_eq!((found.0, found.1, found.2), (right.untyped().unwrap(), parent, left.untyped().unwrap()));
    assert!(matches!(found.3, LookupError::WrongType(_)));
    assert_eq!(found.4, LookupError::NoActor { path: path("/user/p/left/child") });
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_look_up_finds_the_incarnation_that_is_there_and_creates_none() {
    let stage = Stage::turns();
    let first = stage.spawn(&stage.role("a"));
    let old = first.path();
    assert_eq!(old.uid(), Some(first.uid()));
    first.stop();
    wait_for_end(&stage, &first);
    assert_eq!(stage.system.actor_at("/user/a"), Err(LookupError::NoActor { path: path("/user/a") }));
    let mut second = None;
    wait_until(|| {
        second = stage.system.actor("a").spawn(stage.role("a").recipe()).ok();
        second.is_some()
    });
    let second = second.unwrap();
    assert_eq!(second.path(), old);
    assert_eq!(stage.system.typed_at::<Tell>("/user/a"), Ok(second));
    assert!(matches!(stage.system.actor_at(&old.serialized()), Err(LookupError::OtherIncarnation { .. })));
    let handle = stage.system.handle().clone();
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
    assert!(matches!(handle.actor_at("/user/a"), Err(LookupError::NoActor { .. })));
}

#[test]
fn a_routers_path_leads_to_its_head_and_by_type_to_the_reference_that_routes() {
    let stage = Stage::turns();
    let role = stage.role("r");
    let router = stage.system.router("r").pool(2, move |_| role.recipe()()).spawn().unwrap();
    let head = stage.system.actor_at("/user/r").unwrap();
    assert_eq!(head, router.head().untyped().unwrap());
    let found = stage.system.typed_at::<Tell>("/user/r").unwrap();
    assert_eq!(found, router.to_ref());
    assert_eq!(query(&found, |_, ctx| ctx.path().parent()), Ok(path("/user/r")));
    assert_eq!(head.typed::<pointsman::routing::Manage<Tell>>().as_ref(), Ok(router.head()));
    assert!(head.typed::<u32>().is_err());
    router.stop();
    wait_for_end(&stage, &router);
    assert!(head.typed::<Tell>().is_err(), "it has ended, and routes no more");
    assert_eq!(stage.system.shutdown(LONG).unwrap().balance(), 0);
}
