//! The code that `#[derive(Wire)]` writes. Its refusals are among the others, in `tests/ui`.

mod support;

use pointsman_macros::Wire;
use support::remote::Wire as _;

#[derive(Wire)]
#[wire(name = "shop.Order", crate = "support")]
struct Order {
    _article: u64,
}

#[derive(Wire)]
#[wire(version = 65_535, crate = "crate::support")]
#[wire(name = "9.a_b-c")]
enum Latest {
    _Nothing,
}

#[test]
fn name_and_version_are_the_declared_ones() {
    assert_eq!((Order::NAME, Order::VERSION), ("shop.Order", 1));
    assert_eq!((Latest::NAME, Latest::VERSION), ("9.a_b-c", 65_535));
}

#[test]
fn a_name_of_64_bytes_is_the_longest() {
    #[derive(Wire)]
    #[wire(name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", crate = "support")]
    struct Long;

    assert_eq!(Long::NAME.len(), 64);
}
