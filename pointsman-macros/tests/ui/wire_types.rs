use pointsman_macros::Wire;

#[derive(Wire)]
#[wire(name = "shop.Either")]
union Either {
    number: u32,
    real: f32,
}

#[derive(Wire)]
#[wire(name = "shop.Of")]
struct Of<T>(T);

#[derive(Wire)]
#[wire(name = "shop.Borrowed")]
struct Borrowed<'a>(&'a str);

fn main() {}
