use pointsman_macros::Message;

#[derive(Message)]
#[message(skip)]
enum OnEnum {}

#[derive(Message)]
enum OnVariant {
    #[message(reply)]
    One(u8),
    #[message(skipp)]
    Two(u16),
}

#[derive(Message)]
enum OnField {
    One(#[message(skip)] u8),
}

#[derive(Message)]
enum Malformed {
    #[message]
    One(u8),
    #[message(skip = true)]
    Two(u16),
    #[message(skip, skip)]
    Three(u32),
}

#[derive(Message)]
#[message(crate = 1)]
enum NoPath {}

fn main() {}
