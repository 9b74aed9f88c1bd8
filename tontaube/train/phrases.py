"""Patterned lines in six languages: numbers, prices, dates, questions, names, single words. English
has ``texts.templates``.

Digits are written out by the server's own normalizer: training text looks as served text will.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from tontaube.text.normalize import normalize
from tontaube.train.texts import NAMES, PLACES

SHORT = {
    "german": "Hallo. Ja. Nein. Gut. Danke! Bitte. Warum? Wann? Wer? Wo? Genau. Stimmt. Tschüss.",
    "spanish": "Hola. Sí. No. Bien. ¡Gracias! Por favor. ¿Por qué? ¿Cuándo? ¿Quién? Claro. Adiós.",
    "french": "Bonjour. Oui. Non. Bien. Merci ! Pardon. Pourquoi ? Quand ? Qui ? Au revoir.",
    "italian": "Ciao. Sì. No. Bene. Grazie! Prego. Perché? Quando? Chi? Certo. Arrivederci.",
    "dutch": "Hallo. Ja. Nee. Goed. Bedankt! Sorry. Waarom? Wanneer? Wie? Precies. Tot ziens.",
    "portuguese": "Olá. Sim. Não. Bom. Obrigado! Desculpe. Por quê? Quando? Quem? Claro. Tchau.",
}
# {n}: an integer, {s}: a small one, {y}: a year, {d}: a decimal, {name}, {place}
PATTERNS = {
    "german": (
        "{n}.", "Das kostet {s} Euro.", "{name} ist {s} Jahre alt.", "Es war im Jahr {y}.",
        "Der Zug nach {place} fährt um {s} Uhr.", "Das sind {d} Prozent.", "Kennt {name} {name}?",
        "Wo ist {name}? In {place}.", "Meine Nummer ist {c}.", "In {place} waren {n} Menschen.",
    ),
    "spanish": (
        "{n}.", "Cuesta {s} euros.", "{name} tiene {s} años.", "Fue en el año {y}.",
        "El tren a {place} sale a las {s}.", "Es el {d} por ciento.", "¿Conoce {name} a {name}?",
        "¿Dónde está {name}? En {place}.", "Mi número es {c}.", "Había {n} personas en {place}.",
    ),
    "french": (
        "{n}.", "Cela coûte {s} euros.", "{name} a {s} ans.", "C'était en {y}.",
        "Le train pour {place} part à {s} heures.", "Cela fait {d} pour cent.",
        "Est-ce que {name} connaît {name} ?", "Où est {name} ? À {place}.", "Mon numéro est {c}.",
        "Il y avait {n} personnes à {place}.",
    ),
    "italian": (
        "{n}.", "Costa {s} euro.", "{name} ha {s} anni.", "Era il {y}.",
        "Il treno per {place} parte alle {s}.", "Fa {d} per cento.", "{name} conosce {name}?",
        "Dov'è {name}? A {place}.", "Il mio numero è {c}.", "C'erano {n} persone a {place}.",
    ),
    "dutch": (
        "{n}.", "Dat kost {s} euro.", "{name} is {s} jaar oud.", "Het was in {y}.",
        "De trein naar {place} vertrekt om {s} uur.", "Dat is {d} procent.", "Kent {name} {name}?",
        "Waar is {name}? In {place}.", "Mijn nummer is {c}.", "Er waren {n} mensen in {place}.",
    ),
    "portuguese": (
        "{n}.", "Custa {s} reais.", "{name} tem {s} anos.", "Foi em {y}.",
        "O trem para {place} sai às {s}.", "São {d} por cento.", "{name} conhece {name}?",
        "Onde está {name}? Em {place}.", "Meu número é {c}.", "Havia {n} pessoas em {place}.",
    ),
}  # fmt: skip
FIELD = re.compile(r"\{(\w+)\}")


def phrases(language: str, count: int, seed: int = 2) -> Iterator[str]:
    """``count`` lines of one of the six languages, in words, reproducible by ``seed``."""
    rng = random.Random(seed)
    short = re.findall(r"[^.!?]+[.!?]", SHORT[language])
    for _ in range(count):
        kind = rng.random()
        if kind < 0.15:
            yield rng.choice(short).strip()
        elif kind < 0.25:
            yield f"{rng.choice(short).strip()} {rng.choice(short).strip()}"
        elif kind < 0.3:
            yield f"{rng.choice(NAMES)}."
        else:
            filled = FIELD.sub(lambda m: _value(m[1], rng), rng.choice(PATTERNS[language]))
            spoken = normalize(filled, language).text
            yield spoken[0].upper() + spoken[1:]


def _value(kind: str, rng: random.Random) -> str:
    if kind == "n":
        return str(rng.randrange(10 ** rng.randint(1, 6)))
    if kind == "s":
        return str(rng.randint(2, 99))
    if kind == "y":
        return str(rng.randint(1800, 2030))
    if kind == "d":
        return f"{rng.randint(1, 99)},{rng.randint(1, 9)}"
    if kind == "c":
        return ", ".join(str(rng.randrange(10)) for _ in range(rng.randint(3, 6)))
    return rng.choice(NAMES if kind == "name" else PLACES)
