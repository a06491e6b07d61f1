use pointsman_macros::HashKey;

#[derive(HashKey)]
union Either {
    number: u32,
    real: f32,
}

fn main() {}
