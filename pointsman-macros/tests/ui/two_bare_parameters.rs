use pointsman_macros::Message;

#[derive(Message)]
enum Either<L, R> {
    Left(L),
    Right(R),
}

fn main() {}
