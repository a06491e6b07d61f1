use pointsman_macros::HashKey;

#[derive(HashKey)]
enum CacheMsg {
    Get(#[hash_key(key)] String),
    Flush,
    Move { from: String, to: String },
}

#[derive(HashKey)]
struct Unit;

#[derive(HashKey)]
struct Skipped {
    #[hash_key(skip)]
    name: String,
}

fn main() {}
