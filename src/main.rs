//! The `pactql` command; all of it is in the library's module `app::cli`.

fn main() -> pactql::cli::Exit {
    pactql::cli::main()
}
