use pointsman_macros::Wire;

#[derive(Wire)]
struct Without;

#[derive(Wire)]
#[wire(version = 2)]
enum VersionAlone {
    Put(String),
}

#[derive(Wire)]
#[wire(name = "")]
struct Empty;

#[derive(Wire)]
#[wire(name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")]
struct Long;

#[derive(Wire)]
#[wire(name = ".Order")]
struct BadBeginning;

#[derive(Wire)]
#[wire(name = "shop::Order")]
struct BadCharacter;

#[derive(Wire)]
#[wire(name = "pointsman.Order")]
struct Reserved;

fn main() {}
