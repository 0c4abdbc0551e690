//! The `pactql` command; all of it is in the library's module `app::cli`.

#[cfg(feature = "count-allocations")]
#[global_allocator]
static ALLOCATOR: pactql::cli::CountingAllocator = pactql::cli::CountingAllocator;

fn main() -> pactql::cli::Exit {
    pactql::cli::main()
}
