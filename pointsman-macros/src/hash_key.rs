//! `#[derive(HashKey)]`: reads which fields are the key, refuses what has none, writes the impl.

use crate::message::{all, local};
use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, Error, Field, Fields, Generics, Ident, LitStr, Member, Path, Result, Type,
    parse_quote,
};

pub fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let crate_path = crate_path(&input.attrs)?;
    let (variants, is_enum) = read_variants(input)?;
    let has_marked = variants.iter().flat_map(|variant| &variant.fields).any(|field| field.mark == Mark::Key);
    let fed = all(variants.iter().map(|variant| fed(variant, has_marked, is_enum)))?;
    // A key that fields were chosen for is theirs alone, whatever variant they are in.
    let is_numbered = is_enum && !has_marked;
    let feeds = |field: &&FieldOf<'_>| {
        let (member, ty) = (&field.member, &field.field.ty);
        let value = binding(member);
        let sink = local("sink");
        // At the field's type, where the compiler should say that it is no `HashKey`.
        quote_spanned! {ty.span()=> #crate_path::routing::HashKey::feed(#value, #sink); }
    };
    let sink = local("sink");
    let arms = variants.iter().zip(&fed).zip(0u32..).map(|((variant, fed), number)| {
        let path = &variant.path;
        let members = fed.iter().map(|field| {
            let (member, value) = (&field.member, binding(&field.member));
            quote! { #member: #value, }
        });
        let number = is_numbered.then(|| quote! { #crate_path::routing::HashKey::feed(&#number, #sink); });
        let feeds = fed.iter().map(feeds);
        quote! { #path { #(#members)* .. } => { #number #(#feeds)* } }
    });
    let body = if variants.is_empty() {
        quote! { let _ = #sink; match *self {} }
    } else {
        quote! { match self { #(#arms)* } }
    };
    let needs = needs(&input.generics, fed.iter().flatten().map(|field| &field.field.ty), &crate_path);
    let name = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    let bounds = bounds.iter().flat_map(|bounds| &bounds.predicates);
    Ok(quote! {
        #[automatically_derived]
        impl #generics #crate_path::routing::HashKey for #name #arguments where #(#bounds,)* #(#needs,)* {
            fn feed(&self, #sink: &mut #crate_path::routing::KeySink) {
                #body
            }
        }
    })
}

/// A variant of an enum, or a struct as a whole.
struct Variant<'a> {
    name: &'a Ident,
    /// How it is matched.
    path: TokenStream,
    fields: Vec<FieldOf<'a>>,
}

struct FieldOf<'a> {
    member: Member,
    field: &'a Field,
    mark: Mark,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    None,
    Key,
    Skip,
}

fn read_variants(input: &DeriveInput) -> Result<(Vec<Variant<'_>>, bool)> {
    match &input.data {
        Data::Struct(data) => Ok((vec![read_variant(&input.ident, quote!(Self), &data.fields)?], false)),
        Data::Enum(data) => {
            let variants = all(data.variants.iter().map(|variant| {
                refuse_all(&variant.attrs, "a variant")?;
                let name = &variant.ident;
                read_variant(name, quote!(Self::#name), &variant.fields)
            }))?;
            Ok((variants, true))
        }
        Data::Union(data) => Err(Error::new(
            data.union_token.span,
            "HashKey can be derived for enums and structs, not for unions",
        )),
    }
}

fn read_variant<'a>(name: &'a Ident, path: TokenStream, fields: &'a Fields) -> Result<Variant<'a>> {
    let fields = all(fields
        .members()
        .zip(fields)
        .map(|(member, field)| Ok(FieldOf { member, field, mark: mark_of(&field.attrs)? })))?;
    Ok(Variant { name, path, fields })
}

/// The fields that are fed.
fn fed<'v, 'a>(variant: &'v Variant<'a>, has_marked: bool, is_enum: bool) -> Result<Vec<&'v FieldOf<'a>>> {
    let fields = || variant.fields.iter();
    if has_marked {
        if let Some(skipped) = fields().find(|field| field.mark == Mark::Skip) {
            return Err(Error::new(
                skipped.field.span(),
                "`skip` beside `key`: fields that are not marked `#[hash_key(key)]` are left out anyhow, so take the \
                 `skip` away",
            ));
        }
    }
    let wanted = if has_marked { Mark::Key } else { Mark::None };
    let fed: Vec<_> = fields().filter(|field| field.mark == wanted).collect();
    let name = variant.name;
    if fed.is_empty() && has_marked {
        return Err(Error::new(
            name.span(),
            format!(
                "`{name}` has no key, and other variants have one: mark a field of it with `#[hash_key(key)]`, or \
                 let `ConsistentHashing::by_option` say which messages have none"
            ),
        ));
    }
    if fed.is_empty() && !is_enum {
        return Err(Error::new(
            name.span(),
            format!(
                "`{name}` has no field to be a key, so that all its values would be one key: give it one that is not skipped"
            ),
        ));
    }
    Ok(fed)
}

/// The name of a field's value in a pattern: the derive names no other value so.
fn binding(member: &Member) -> Ident {
    match member {
        Member::Named(name) => local(&format!("field_{}", name.to_string().trim_start_matches("r#"))),
        Member::Unnamed(index) => local(&format!("field_{}", index.index)),
    }
}

/// The bounds that the types of these fields need on the type parameters.
fn needs<'a>(
    generics: &Generics,
    fed: impl Iterator<Item = &'a Type>,
    crate_path: &Path,
) -> Vec<TokenStream> {
    let need = |ty: &Type| {
        generics
            .type_params()
            .filter_map(|parameter| {
                let name = &parameter.ident;
                match use_of(ty, name) {
                    Use::None => None,
                    Use::Itself => Some(quote!(#name: #crate_path::routing::HashKey)),
                    Use::Projection => Some(quote!(#ty: #crate_path::routing::HashKey)),
                }
            })
            .collect::<Vec<_>>()
    };
    fed.flat_map(need).collect()
}

enum Use {
    None,
    Itself,
    /// A type that belongs to the parameter.
    Projection,
}

/// How a type uses a type parameter.
fn use_of(ty: &Type, parameter: &Ident) -> Use {
    fn look(tokens: TokenStream, parameter: &Ident) -> Use {
        let mut tokens = tokens.into_iter().peekable();
        let mut found = Use::None;
        while let Some(token) = tokens.next() {
            let here = match token {
                TokenTree::Ident(ident) if ident == *parameter => match tokens.peek() {
                    Some(TokenTree::Punct(next)) if next.as_char() == ':' => Use::Projection,
                    _ => Use::Itself,
                },
                TokenTree::Group(group) => look(group.stream(), parameter),
                _ => Use::None,
            };
            match here {
                Use::Projection => return Use::Projection,
                Use::Itself => found = Use::Itself,
                Use::None => {}
            }
        }
        found
    }
    look(ty.to_token_stream(), parameter)
}

const KNOWN: &str = "`key` and `skip` go on a field, `crate = \"path\"` on the enum or struct";

fn crate_path(attributes: &[Attribute]) -> Result<Path> {
    let mut path = None;
    for attribute in ours(attributes) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error(format!("unknown key on an enum or a struct: {KNOWN}")));
            }
            let given = meta.value()?.parse::<LitStr>()?.parse_with(Path::parse_mod_style)?;
            match path.replace(given) {
                Some(_) => Err(meta.error("`crate` is given twice")),
                None => Ok(()),
            }
        })?;
    }
    Ok(path.unwrap_or_else(|| parse_quote!(::pointsman)))
}

fn mark_of(attributes: &[Attribute]) -> Result<Mark> {
    let mut mark = Mark::None;
    for attribute in ours(attributes) {
        attribute.parse_nested_meta(|meta| {
            let said = if meta.path.is_ident("key") {
                Mark::Key
            } else if meta.path.is_ident("skip") {
                Mark::Skip
            } else {
                return Err(meta.error(format!("unknown key on a field: {KNOWN}")));
            };
            match std::mem::replace(&mut mark, said) {
                Mark::None => Ok(()),
                before if before == said => Err(meta.error("it is given twice")),
                _ => Err(meta.error("a field is either `key` or `skip`")),
            }
        })?;
    }
    Ok(mark)
}

/// Says that nothing belongs here.
fn refuse_all(attributes: &[Attribute], owner: &str) -> Result<()> {
    match ours(attributes).next() {
        Some(attribute) => Err(Error::new(attribute.span(), format!("nothing is known on {owner}: {KNOWN}"))),
        None => Ok(()),
    }
}

fn ours(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("hash_key"))
}
