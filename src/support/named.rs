//! Enums whose variants have a name each.

/// Declares an enum with the name of each variant, which a function returns and `Display` writes.
macro_rules! named {
    (
        $(#[$meta:meta])* $vis:vis enum $Enum:ident;
        $(#[$of:meta])* fn $name:ident;
        $($(#[$doc:meta])* $Variant:ident = $text:literal,)*
    ) => {
        $(#[$meta])*
        $vis enum $Enum {
            $($(#[$doc])* $Variant,)*
        }

        impl $Enum {
            $(#[$of])*
            #[must_use]
            $vis fn $name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $text,)*
                }
            }
        }

        impl std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.$name())
            }
        }
    };
}

pub(crate) use named;
