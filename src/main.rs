//! The program: everything is in the library, so that tests and benches run what the program runs.

/// Many small things come and go on several threads, and what is no longer needed goes back to the operating system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    upbeat::cli::run()
}
