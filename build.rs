//! Generates the selector parser from `grammar/selector.lalrpop` into `OUT_DIR`.

fn main() {
    println!("cargo:rerun-if-changed=grammar/selector.lalrpop");
    let outcome = lalrpop::Configuration::new()
        .set_in_dir("grammar")
        .set_out_dir(std::env::var("OUT_DIR").unwrap_or_default())
        .process();
    if let Err(error) = outcome {
        eprintln!("grammar/selector.lalrpop: {error}");
        std::process::exit(1);
    }
}
