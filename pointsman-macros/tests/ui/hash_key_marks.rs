use pointsman_macros::HashKey;

#[derive(HashKey)]
struct Both {
    #[hash_key(key)]
    name: String,
    #[hash_key(skip)]
    value: u64,
}

#[derive(HashKey)]
struct Twice {
    #[hash_key(key, skip)]
    name: String,
}

#[derive(HashKey)]
struct Unknown {
    #[hash_key(only)]
    name: String,
}

#[derive(HashKey)]
enum OnVariant {
    #[hash_key(skip)]
    Get(String),
}

#[derive(HashKey)]
#[hash_key(skip)]
struct OnType(u32);

fn main() {}
