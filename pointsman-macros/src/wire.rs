//! `#[derive(Wire)]`: reads the name and the version, refuses names that no other node could rely on, writes the impl.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, LitInt, LitStr, Path, Result, parse_quote};

const KNOWN: &str = "`name = \"…\"`, `version = 1` and `crate = \"path\"` go on the enum or struct, and nothing goes on its parts";

/// The longest name, in bytes; `pointsman::remote` has the same.
const NAME_MAX: usize = 64;

/// The beginning of the names that pointsman gives to types of the standard library.
const RESERVED: &str = "pointsman.";

pub fn derive(input: &DeriveInput) -> Result<TokenStream> {
    if let Data::Union(data) = &input.data {
        let text = "Wire can be derived for enums and structs, not for unions";
        return Err(Error::new(data.union_token.span, text));
    }
    if !input.generics.params.is_empty() {
        let text = "Wire cannot be derived for a type with parameters, since a name stands for one type: write \
                    `impl Wire` for each type that is sent, each with a name of its own";
        return Err(Error::new(input.generics.span(), text));
    }
    for attribute in attributes_of_parts(&input.data) {
        if attribute.path().is_ident("wire") {
            return Err(Error::new(attribute.span(), format!("nothing is known here: {KNOWN}")));
        }
    }
    let Declared { name, version, crate_path } = declared(input)?;
    let this = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl #crate_path::remote::Wire for #this {
            const NAME: &'static str = #name;
            const VERSION: u16 = #version;
        }
    })
}

/// The attributes of fields and variants.
fn attributes_of_parts(data: &Data) -> Vec<&Attribute> {
    match data {
        Data::Struct(data) => data.fields.iter().flat_map(|field| &field.attrs).collect(),
        Data::Enum(data) => {
            let fields = data.variants.iter().flat_map(|variant| &variant.fields);
            let of_fields = fields.flat_map(|field| &field.attrs);
            data.variants.iter().flat_map(|variant| &variant.attrs).chain(of_fields).collect()
        }
        Data::Union(_) => Vec::new(),
    }
}

struct Declared {
    name: LitStr,
    version: u16,
    crate_path: Path,
}

fn declared(input: &DeriveInput) -> Result<Declared> {
    let (mut name, mut version, mut crate_path) = (None, None, None);
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("wire")) {
        attribute.parse_nested_meta(|meta| {
            let is_second = if meta.path.is_ident("name") {
                let given: LitStr = meta.value()?.parse()?;
                check_name(&given)?;
                name.replace(given).is_some()
            } else if meta.path.is_ident("version") {
                let given: LitInt = meta.value()?.parse()?;
                let number = given.base10_parse::<u16>().ok().filter(|number| *number > 0);
                let text = "a version is a number from 1 to 65535";
                version.replace(number.ok_or_else(|| Error::new(given.span(), text))?).is_some()
            } else if meta.path.is_ident("crate") {
                let given = meta.value()?.parse::<LitStr>()?.parse_with(Path::parse_mod_style)?;
                crate_path.replace(given).is_some()
            } else {
                return Err(meta.error(format!("unknown key: {KNOWN}")));
            };
            if is_second { Err(meta.error("it is given twice")) } else { Ok(()) }
        })?;
    }
    let missing = || {
        let text = format!(
            "`{}` has no name on the wire: declare one that does not change when the type is moved or renamed, \
             such as `#[wire(name = \"shop.{}\")]`",
            input.ident, input.ident
        );
        Error::new(input.ident.span(), text)
    };
    Ok(Declared {
        name: name.ok_or_else(missing)?,
        version: version.unwrap_or(1),
        crate_path: crate_path.unwrap_or_else(|| parse_quote!(::pointsman)),
    })
}

/// `wire::check_name` of the crate checks names that are written by hand.
fn check_name(given: &LitStr) -> Result<()> {
    let name = given.value();
    let fault = |text: String| Err(Error::new(given.span(), text));
    if name.is_empty() || name.len() > NAME_MAX {
        return fault(format!("a name has 1 to {NAME_MAX} bytes, and this one has {}", name.len()));
    }
    let allowed = |(at, byte): (usize, u8)| byte.is_ascii_alphanumeric() || at > 0 && b"._-".contains(&byte);
    if !name.bytes().enumerate().all(allowed) {
        return fault(format!(
            "`{name}` is no name: use ASCII letters and digits, and `.`, `_`, `-` behind the first of them"
        ));
    }
    if name.starts_with(RESERVED) {
        return fault(format!(
            "names that begin with `{RESERVED}` are those of the crate: choose another one"
        ));
    }
    Ok(())
}
