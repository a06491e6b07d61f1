use pointsman_macros::Message;

struct ReplyTo<R>(R);

#[derive(Message)]
enum Unmarked {
    Ask(ReplyTo<u8>, ReplyTo<u16>),
}

#[derive(Message)]
enum Marked {
    Ask { #[message(reply)] one: ReplyTo<u8>, #[message(reply)] other: ReplyTo<u16> },
}

fn main() {}
