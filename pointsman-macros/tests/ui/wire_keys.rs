use pointsman_macros::Wire;

#[derive(Wire)]
#[wire(name = "shop.Order", version = 0)]
struct Zero;

#[derive(Wire)]
#[wire(name = "shop.Order", version = 65536)]
struct Large;

#[derive(Wire)]
#[wire(name = "shop.Order", id = 7)]
struct Unknown;

#[derive(Wire)]
#[wire(name = "shop.Order")]
#[wire(name = "shop.Order")]
struct Twice;

#[derive(Wire)]
#[wire(name = "shop.Order")]
struct OnField {
    #[wire(skip)]
    article: u64,
}

#[derive(Wire)]
#[wire(name = "shop.Order")]
enum OnVariant {
    #[wire(name = "shop.Put")]
    Put,
}

fn main() {}
