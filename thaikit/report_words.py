"""The words of the report's summary in English and Thai: sentences with places for what code fills in, no numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from thaikit.figures_thaicli import THEMES
from thaikit.report_parts import number

LANGUAGES = ("en", "th")
NAMES = 6  # of models in a sentence; the others are counted

SENTENCES: Mapping[str, Mapping[str, str]] = {
    "en": {
        "ran": "{benchmark}{terms}: {models}, scored on {items}.",
        "judged": "{benchmark}{terms}: {models}, judged by {judge}, scored on {items}.",
        "best": "{first} has the highest score, {value}; {last} has the lowest, {lowest}.",
        "alike": "All of them score {value}.",
        "alone": "{model} scores {value}.",
        "no score": "{model} has no score, because {why}.",
        "interval": "{value} ({confidence} % interval {low} to {high})",
        "no interval": "{value} (no interval, because {why})",
        "percent": "{x} %",
        "points": "{x} points",
        "nothing": "No score of a benchmark is among these runs.",
        "one model": "Only one model has a score here, so nothing is compared.",
        "pair differs": "After Holm's correction {ahead} is shown to be higher.",
        "pair alike": "After Holm's correction no difference between the two is shown, so it cannot be told which is "
        "better.",
        "all differ": "After Holm's correction every one of the {count} pairs is shown to differ.",
        "none differ": "After Holm's correction none of the {count} pairs is shown to differ, so it cannot be told "
        "which model is better.",
        "some differ": "After Holm's correction {shown} of {count} pairs are shown to differ; for the other {rest} it "
        "cannot be told which model is better.",
        "untested": "Pairs that could not be tested, because they share too few items: {count}.",
        "rehearsal": "Rehearsals, whose numbers say nothing about any model's Thai: {names}.",
        "limit": "A limit was set, so only a part of the items was asked: {names}.",
        "limited": "{model} (at most {limit} a task)",
        "cut": "More than {allowed} of the completions hit the limit of new tokens, which cuts answers off: {names}.",
        "cut one": "{model} in {task} ({share})",
        "gate": "The judge {judge} hardly tells chosen from rejected answers in the following: {themes}.",
        "no gate": "The judge {judge} was not tested on chosen and rejected answers, so how well it judges is "
        "not known.",
        "coverage": "Not every ThaiCLI item has a score: the coverage of {model} is {share} ({ok} of {asked}), and no "
        "other one is lower.",
        "tax one": "{model} takes {low} times as many tokens for Thai as for English of the same meaning.",
        "tax": "For Thai these models take {low} to {high} times as many tokens as for English of the same meaning.",
        "day": "The runs ended on {day}; data: {places}.",
        "days": "The runs ended between {day} and {last}; data: {places}.",
        "undated": "Data: {places}.",
        "date": "{d} {month} {year}",
        "not recorded": "not recorded",
        "more": "{count} more",
    },
    "th": {
        "ran": "{benchmark}{terms}: ประเมิน {models} โดยคิดคะแนนจากโจทย์ {items}",
        "judged": "{benchmark}{terms}: ประเมิน {models} โดยใช้ {judge} เป็นโมเดลผู้ตัดสิน และคิดคะแนนจากโจทย์ {items}",
        "best": "{first} ได้คะแนนสูงสุด คือ {value} ส่วน {last} ได้คะแนนต่ำสุด คือ {lowest}",
        "alike": "ทุกโมเดลได้คะแนนเท่ากัน คือ {value}",
        "alone": "{model} ได้คะแนน {value}",
        "no score": "คะแนนของ {model} ไม่มีค่า เนื่องจาก{why}",
        "interval": "{value} (ช่วงความเชื่อมั่น {confidence}% ตั้งแต่ {low} ถึง {high})",
        "no interval": "{value} (ช่วงความเชื่อมั่นไม่มีค่า เนื่องจาก{why})",
        "percent": "ร้อยละ {x}",
        "points": "{x} คะแนน",
        "nothing": "ไม่มีคะแนนของชุดทดสอบใดในผลการประเมินนี้",
        "one model": "มีคะแนนเพียงโมเดลเดียว จึงไม่มีการเปรียบเทียบ",
        "pair differs": "เมื่อปรับค่า p ด้วยวิธีโฮล์ม (Holm) แล้ว {ahead} ได้คะแนนสูงกว่าอย่างมีนัยสำคัญทางสถิติ",
        "pair alike": "เมื่อปรับค่า p ด้วยวิธีโฮล์ม (Holm) แล้ว ไม่พบความแตกต่างอย่างมีนัยสำคัญทางสถิติระหว่างสองโมเดลนี้ "
        "จึงยังสรุปไม่ได้ว่าโมเดลใดดีกว่า",
        "all differ": "เมื่อปรับค่า p ด้วยวิธีโฮล์ม (Holm) แล้ว พบความแตกต่างอย่างมีนัยสำคัญทางสถิติครบทั้ง {count} คู่",
        "none differ": "เมื่อปรับค่า p ด้วยวิธีโฮล์ม (Holm) แล้ว ไม่พบความแตกต่างอย่างมีนัยสำคัญทางสถิติในคู่ใดเลยจากทั้งหมด {count} คู่ "
        "จึงยังสรุปไม่ได้ว่าโมเดลใดดีกว่า",
        "some differ": "เมื่อปรับค่า p ด้วยวิธีโฮล์ม (Holm) แล้ว พบความแตกต่างอย่างมีนัยสำคัญทางสถิติ {shown} คู่ จากทั้งหมด {count} คู่ "
        "ส่วนอีก {rest} คู่ยังสรุปไม่ได้ว่าโมเดลใดดีกว่า",
        "untested": "คู่ที่ทดสอบไม่ได้เพราะมีโจทย์ร่วมกันน้อยเกินไปมี {count} คู่",
        "rehearsal": "ผลของโมเดลต่อไปนี้เป็นเพียงการซ้อมระบบ ตัวเลขจึงไม่บ่งบอกความสามารถด้านภาษาไทย ได้แก่ {names}",
        "limit": "มีการจำกัดจำนวนโจทย์ จึงใช้โจทย์เพียงบางส่วนกับโมเดลต่อไปนี้ ได้แก่ {names}",
        "limited": "{model} (ไม่เกินชุดละ {limit} ข้อ)",
        "cut": "มีคำตอบถูกตัดเพราะถึงขีดจำกัดจำนวนโทเคนเกิน{allowed} ได้แก่ {names}",
        "cut one": "{model} ในชุด {task} ({share})",
        "gate": "โมเดลผู้ตัดสิน {judge} แทบแยกคำตอบที่ดีกับคำตอบที่ไม่ดีไม่ออกในหมวดต่อไปนี้: {themes}",
        "no gate": "ไม่ได้ทดสอบโมเดลผู้ตัดสิน {judge} กับคำตอบที่ดีและคำตอบที่ไม่ดี จึงไม่ทราบว่าตัดสินได้แม่นยำเพียงใด",
        "coverage": "โจทย์ ThaiCLI บางข้อไม่มีคะแนน โดย {model} มีสัดส่วนข้อที่มีคะแนน (coverage) ต่ำที่สุด คือ {share} "
        "({ok} จาก {asked} ข้อ)",
        "tax one": "{model} ใช้โทเคนกับข้อความภาษาไทยเป็น {low} เท่าของข้อความภาษาอังกฤษที่มีความหมายเดียวกัน",
        "tax": "โมเดลเหล่านี้ใช้โทเคนกับข้อความภาษาไทยเป็น {low} ถึง {high} เท่าของข้อความภาษาอังกฤษที่มีความหมายเดียวกัน",
        "day": "การประเมินเสร็จสิ้นเมื่อวันที่ {day} ข้อมูลที่ใช้: {places}",
        "days": "การประเมินเสร็จสิ้นระหว่างวันที่ {day} ถึงวันที่ {last} ข้อมูลที่ใช้: {places}",
        "undated": "ข้อมูลที่ใช้: {places}",
        "date": "{d} {month} พ.ศ. {year}",
        "not recorded": "ไม่ได้บันทึกไว้",
        "more": "อีก {count} รายการ",
    },
}  # fmt: skip
MONTHS = {
    "en": ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December"),
    "th": ("มกราคม", "กุมภาพันธ์", "มีนาคม", "เมษายน", "พฤษภาคม", "มิถุนายน", "กรกฎาคม", "สิงหาคม", "กันยายน",
           "ตุลาคม", "พฤศจิกายน", "ธันวาคม"),
}  # fmt: skip
BUDDHIST = 543  # years from the Christian era to the Thai calendar's
# Reasons as the statistics write them → Thai; whatever is not here is quoted as it stands.
REASONS = (
    (r"no items", "ไม่มีโจทย์ที่ได้คะแนน"),
    (r"one item has no spread|one item cannot be resampled", "มีโจทย์เพียงข้อเดียว จึงประมาณความแปรปรวนไม่ได้"),
    (r"the values have no spread", "คะแนนทุกข้อเท่ากัน จึงประมาณความแปรปรวนไม่ได้"),
    (r"every group has one item", "แต่ละกลุ่มมีโจทย์เพียงข้อเดียว"),
    (r"(\d+) of (\d+) estimates have no interval", r"ค่าประมาณ \1 จาก \2 ค่าไม่มีช่วงความเชื่อมั่น"),
    (r"all (\d+) items are of one cluster", r"โจทย์ทั้ง \1 ข้ออยู่ในกลุ่มเดียวกัน"),
    (r"no average over its (\d+) tasks", r"ไม่มีค่าเฉลี่ยของทั้ง \1 ชุด"),
    (r"no (factoid|instruction) item has a score", r"ไม่มีโจทย์แบบ \1 ที่ได้คะแนน"),
    (r"(not told)?", "ไม่ได้บันทึกเหตุผลไว้"),
)


def say(lang: str, key: str, **facts: Any) -> str:
    """A sentence or a part of one, its places filled."""
    return SENTENCES[lang][key].format(**facts)


def listed(lang: str, names: Sequence[str], most: int = NAMES) -> str:
    """Names as a list in a sentence, the rest counted."""
    some = [*names[:most], *([say(lang, "more", count=len(names) - most)] if len(names) > most else [])]
    if lang == "en" or len(some) == 1:
        return some[0] if len(some) == 1 else f"{', '.join(some[:-1])} and {some[-1]}"
    thai = [starts_in_thai(name) for name in some]  # a space parts Thai words, a comma others; และ joins a Thai one
    return f"{(' ' if all(thai) else ', ').join(some[:-1])} และ{'' if thai[-1] else ' '}{some[-1]}"


def starts_in_thai(text: str) -> bool:
    """Whether a text's first letter is Thai."""
    return "ก" <= text[:1] <= "๛"


def counted(lang: str, count: int, unit: str) -> str:
    """A count with its unit: `item`, `model`."""
    if lang == "th":
        return f"{count:,} {dict(item='ข้อ', model='โมเดล')[unit]}"
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def date(lang: str, day: str) -> str:
    """A day written 2026-11-30 as people write it, in Thai by the Thai calendar; as it stands where it is no day."""
    found = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", day)
    if not found or not 1 <= int(found[2]) <= len(MONTHS[lang]):
        return day
    year = int(found[1]) + (BUDDHIST if lang == "th" else 0)
    return say(lang, "date", d=int(found[3]), month=MONTHS[lang][int(found[2]) - 1], year=year)


def reason(lang: str, method: Any) -> str:
    """Why a number is not there, from the method that run.json has in its place."""
    told = str(method or "").strip()
    why = told.removeprefix("none:").strip() if told.startswith("no") else ""
    if lang == "en":
        return why or "no reason is recorded"
    for pattern, thai in REASONS:
        if re.fullmatch(pattern, why):
            return re.sub(f"^(?:{pattern})$", thai, why, count=1)
    return f"สาเหตุที่บันทึกไว้ว่า “{why}”"


def theme(lang: str, key: str) -> str:
    """A theme's name."""
    return THEMES.get(key, (key, key))[LANGUAGES.index(lang)]


def share(lang: str, value: Any, digits: int = 1) -> str:
    """0..1 in percent."""
    return say(lang, "percent", x=f"{100 * number(value):.{digits}f}")
