//! The `pactql` command. Everything is in the library's `cli` room.

fn main() -> pactql::cli::Exit {
    pactql::cli::main()
}
