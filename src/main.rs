//! The `pactql` command; all of it is in the library's `cli` module.

fn main() -> pactql::cli::Exit {
    pactql::cli::main()
}
