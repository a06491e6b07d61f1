# Short names for common commands; CONTRIBUTING.md has the others.

# Types and lints of the whole workspace.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Unit tests of the library and the house rules; below 60 s from a warm build.
test-fast:
    cargo test -p pointsman --lib --test tidy

# The models whose names contain NAME, in whichever binary they are, with what each explored.
model NAME:
    cargo test --release -p loom-tests {{NAME}} -- --nocapture

# Everything that must hold before a change is taken; installs what is missing.
gate:
    bash .ci/run
