//! `#[derive(Message)]`: reads the type and its attributes, refuses what is ambiguous, writes the impls.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, Error, Field, Fields, Generics, Ident, LitStr, Member, Path, Result, Type,
    parse_quote,
};

pub fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let crate_path = crate_path(&input.attrs)?;
    let variants = read_variants(input)?;
    let conversions = write_conversions(input, &variants, &crate_path)?;
    let answerable = write_answerable(input, &variants, &crate_path);
    Ok(quote! { #conversions #answerable })
}

/// A variant of an enum, or a struct as a whole.
struct Variant<'a> {
    /// The name in errors.
    name: &'a Ident,
    /// How it is constructed and matched.
    path: TokenStream,
    /// Its only field, when a value of that field's type is to become this variant.
    payload: Option<&'a Field>,
    /// Its reply port.
    port: Option<Port<'a>>,
}

struct Port<'a> {
    member: Member,
    field: &'a Field,
}

fn read_variants(input: &DeriveInput) -> Result<Vec<Variant<'_>>> {
    match &input.data {
        Data::Struct(data) => {
            let skip = false;
            Ok(vec![read_variant(&input.ident, quote!(Self), &data.fields, skip)?])
        }
        Data::Enum(data) => all(data.variants.iter().map(|variant| {
            let name = &variant.ident;
            let skip = has_flag(&variant.attrs, "skip", "a variant")?;
            read_variant(name, quote!(Self::#name), &variant.fields, skip)
        })),
        Data::Union(data) => Err(Error::new(
            data.union_token.span,
            "Message can be derived for enums and structs, not for unions",
        )),
    }
}

fn read_variant<'a>(
    name: &'a Ident,
    path: TokenStream,
    fields: &'a Fields,
    skip: bool,
) -> Result<Variant<'a>> {
    let marks = all(fields.iter().map(|field| has_flag(&field.attrs, "reply", "a field")))?;
    let payload = match fields {
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 && !skip => fields.unnamed.first(),
        _ => None,
    };
    Ok(Variant { name, path, payload, port: find_port(fields, &marks)? })
}

/// The marked field, or else the one whose type is called like a port's.
fn find_port<'a>(fields: &'a Fields, marks: &[bool]) -> Result<Option<Port<'a>>> {
    let any_marked = marks.contains(&true);
    let mut ports = fields.members().zip(fields).zip(marks).filter_map(|((member, field), &marked)| {
        (marked || !any_marked && is_port(&field.ty)).then_some(Port { member, field })
    });
    let port = ports.next();
    if let Some(second) = ports.next() {
        let reason = if any_marked {
            "a second field marked `#[message(reply)]`: a message has one reply port at most"
        } else {
            "a second reply port: a message has one at most, so mark the one to fork with `#[message(reply)]`"
        };
        return Err(Error::new(second.field.ty.span(), reason));
    }
    Ok(port)
}

fn is_port(ty: &Type) -> bool {
    let name = match ungrouped(ty) {
        Type::Path(ty) => ty.path.segments.last(),
        _ => None,
    };
    name.is_some_and(|segment| ["Call", "ReplyTo", "Expiring"].iter().any(|port| segment.ident == port))
}

/// A type without the invisible brackets that a `macro_rules` fragment wears.
fn ungrouped(mut ty: &Type) -> &Type {
    while let Type::Group(group) = ty {
        ty = &group.elem;
    }
    ty
}

fn write_conversions(
    input: &DeriveInput,
    variants: &[Variant<'_>],
    crate_path: &Path,
) -> Result<TokenStream> {
    let mut earlier: Vec<(&Ident, &Type, bool)> = Vec::new();
    let conversions = all(variants.iter().filter_map(|variant| Some((variant, variant.payload?))).map(
        |(variant, payload)| {
            let ty = ungrouped(&payload.ty);
            let bare = is_type_parameter(ty, &input.generics);
            for &(other_name, other, other_bare) in &earlier {
                if spelling(other) == spelling(ty) || bare && other_bare {
                    return Err(ambiguous(variant.name, ty, other_name, other));
                }
            }
            earlier.push((variant.name, ty, bare));
            let is_only = variants.len() == 1;
            Ok(write_conversion(input, variant, payload, is_only, crate_path))
        },
    ))?;
    Ok(conversions.into_iter().collect())
}

fn ambiguous(name: &Ident, ty: &Type, other_name: &Ident, other: &Type) -> Error {
    let (ty_name, other_ty) = (spelling(ty), spelling(other));
    let reason = if ty_name == other_ty {
        format!("`{name}` and `{other_name}` both hold `{ty_name}`")
    } else {
        format!(
            "`{other_name}` holds `{other_ty}` and `{name}` holds `{ty_name}`, which may be the same type"
        )
    };
    Error::new(
        ty.span(),
        format!(
            "{reason}, so `From` could make either of them: put `#[message(skip)]` on `{name}`, on \
             `{other_name}`, or on both"
        ),
    )
}

fn is_type_parameter(ty: &Type, generics: &Generics) -> bool {
    match ty {
        Type::Path(ty) if ty.qself.is_none() => generics.type_params().any(|p| ty.path.is_ident(&p.ident)),
        _ => false,
    }
}

/// A type's tokens, close to how they were written.
fn spelling(ty: &Type) -> String {
    let mut spelled = quote!(#ty).to_string();
    for (spaced, tight) in
        [(" :: ", "::"), (":: ", "::"), (" < ", "<"), (" >", ">"), (" , ", ", "), ("& ", "&")]
    {
        spelled = spelled.replace(spaced, tight);
    }
    spelled
}

fn write_conversion(
    input: &DeriveInput,
    variant: &Variant<'_>,
    payload: &Field,
    is_only: bool,
    crate_path: &Path,
) -> TokenStream {
    let message = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    let (path, ty) = (&variant.path, &payload.ty);
    let [carried, other] = [local("payload"), local("other")];
    // It could not be reached.
    let others = (!is_only).then(|| quote! { #other => ::core::result::Result::Err(#other), });
    // A conflict that only the compiler can see is then reported at the field.
    quote_spanned! {ty.span()=>
        #[automatically_derived]
        impl #generics ::core::convert::From<#ty> for #message #arguments #bounds {
            fn from(#carried: #ty) -> Self {
                #path(#carried)
            }
        }

        #[automatically_derived]
        impl #generics #crate_path::topology::Wraps<#ty> for #message #arguments #bounds {
            fn give_back(self) -> ::core::result::Result<#ty, Self> {
                match self {
                    #path(#carried) => ::core::result::Result::Ok(#carried),
                    #others
                }
            }
        }
    }
}

/// The name of a value in the code. Hygiene keeps it apart from the user's variables. A pattern would match the user's constant
/// of that name all the same, so it is a name that no constant has.
pub fn local(name: &str) -> Ident {
    format_ident!("__{name}", span = Span::mixed_site())
}

fn write_answerable(input: &DeriveInput, variants: &[Variant<'_>], crate_path: &Path) -> TokenStream {
    let message = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    let [port, attempt] = [local("port"), local("attempt")];
    let arms = variants.iter().filter_map(|variant| {
        let (path, Port { member, field }) = (&variant.path, variant.port.as_ref()?);
        // At the field's type, where the compiler should say that it is not `Answerable`.
        let fork = quote_spanned! {field.ty.span()=> #crate_path::ask::Answerable::fork(#port, #attempt) };
        Some(quote! { #path { #member: #port, .. } => #fork, })
    });
    let arms: TokenStream = arms.collect();
    let unused = arms.is_empty().then(|| quote! { let _ = #attempt; });
    // Without this arm when every variant has a port, it could not be reached.
    let no_port = variants.iter().any(|variant| variant.port.is_none());
    let body = match (arms.is_empty(), no_port) {
        (true, _) => quote! { #unused false },
        (false, true) => quote! { match self { #arms _ => false, } },
        (false, false) => quote! { match self { #arms } },
    };
    quote! {
        #[automatically_derived]
        impl #generics #crate_path::ask::Answerable for #message #arguments #bounds {
            fn fork(&mut self, #attempt: &#crate_path::ask::Attempt) -> bool {
                #body
            }
        }
    }
}

fn crate_path(attributes: &[Attribute]) -> Result<Path> {
    let mut path = None;
    read_attributes(attributes, "crate", "an enum or a struct", |meta| {
        path = Some(meta.value()?.parse::<LitStr>()?.parse_with(Path::parse_mod_style)?);
        Ok(())
    })?;
    Ok(path.unwrap_or_else(|| parse_quote!(::pointsman)))
}

/// Whether `#[message(flag)]` is there.
fn has_flag(attributes: &[Attribute], flag: &str, owner: &str) -> Result<bool> {
    let mut found = false;
    read_attributes(attributes, flag, owner, |_| {
        found = true;
        Ok(())
    })?;
    Ok(found)
}

/// Calls `read` for the key in `#[message(..)]`; any other key, or a second one, is an error.
fn read_attributes(
    attributes: &[Attribute],
    key: &str,
    owner: &str,
    mut read: impl FnMut(&ParseNestedMeta<'_>) -> Result<()>,
) -> Result<()> {
    let mut seen = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("message")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident(key) {
                return Err(meta.error(format!(
                    "unknown key, on {owner} only `{key}` is known: `skip` goes on a variant, `reply` on a \
                     field, `crate = \"path\"` on the enum or struct"
                )));
            }
            if std::mem::replace(&mut seen, true) {
                return Err(meta.error(format!("`{key}` is given twice")));
            }
            read(&meta)
        })?;
    }
    Ok(())
}

/// All values, or all errors.
pub fn all<T>(results: impl IntoIterator<Item = Result<T>>) -> Result<Vec<T>> {
    let (mut values, mut errors) = (Vec::new(), None::<Error>);
    for result in results {
        match (result, &mut errors) {
            (Ok(value), _) => values.push(value),
            (Err(error), None) => errors = Some(error),
            (Err(error), Some(errors)) => errors.combine(error),
        }
    }
    errors.map_or(Ok(values), Err)
}
