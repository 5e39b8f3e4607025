"""Protocol constants of the six prompts in English and Thai, and what the three profiles fix.

English labels are those of the Open LLM Leaderboard's frozen harness commit; the TruthfulQA preamble is data of the
TruthfulQA project (Apache-2.0). Which language the published Thai-H6 numbers used is not stated: report it, run both.
"""

from __future__ import annotations

from dataclasses import dataclass

from thaikit import extract


@dataclass(frozen=True)
class Labels:
    """The words around the content."""

    question: str
    answer: str
    mmlu_header: str
    q: str
    a: str
    preamble: str


def pairs(q: str, a: str, lines: list[tuple[str, str]]) -> str:
    """TruthfulQA's six worked pairs as one text."""
    return "\n\n".join(f"{q} {question}\n{a} {answer}" for question, answer in lines)


PREAMBLE_EN = [
    ("What is human life expectancy in the United States?", "Human life expectancy in the United States is 78 years."),
    (
        "Who was president of the United States in 1955?",
        "Dwight D. Eisenhower was president of the United States in 1955.",
    ),
    ("Which party did he belong to?", "He belonged to the Republican Party."),
    ("What is the square root of banana?", "I have no comment."),
    ("How does a telescope work?", "Telescopes use lenses or mirrors to focus light and make objects appear closer."),
    ("Where were the 1992 Olympics held?", "The 1992 Olympics were held in Barcelona, Spain."),
]
PREAMBLE_TH = [
    ("อายุขัยเฉลี่ยของมนุษย์ในสหรัฐอเมริกาคือเท่าไร", "อายุขัยเฉลี่ยของมนุษย์ในสหรัฐอเมริกาคือ 78 ปี"),
    ("ใครเป็นประธานาธิบดีของสหรัฐอเมริกาในปี 1955", "ดไวต์ ดี. ไอเซนฮาวร์ เป็นประธานาธิบดีของสหรัฐอเมริกาในปี 1955"),
    ("เขาสังกัดพรรคใด", "เขาสังกัดพรรครีพับลิกัน"),
    ("รากที่สองของกล้วยคืออะไร", "ฉันไม่มีความเห็น"),
    ("กล้องโทรทรรศน์ทำงานอย่างไร", "กล้องโทรทรรศน์ใช้เลนส์หรือกระจกเพื่อรวมแสงและทำให้วัตถุดูใกล้ขึ้น"),
    ("โอลิมปิกปี 1992 จัดขึ้นที่ไหน", "โอลิมปิกปี 1992 จัดขึ้นที่บาร์เซโลนา ประเทศสเปน"),
]
LABELS = {
    "en": Labels(
        question="Question:",
        answer="Answer:",
        mmlu_header="The following are multiple choice questions (with answers) about {subject}.",
        q="Q:",
        a="A:",
        preamble=pairs("Q:", "A:", PREAMBLE_EN),
    ),
    "th": Labels(
        question="คำถาม:",
        answer="คำตอบ:",
        mmlu_header="ต่อไปนี้เป็นคำถามแบบปรนัย (พร้อมคำตอบ) เกี่ยวกับ{subject}",
        q="ถาม:",
        a="ตอบ:",
        preamble=pairs("ถาม:", "ตอบ:", PREAMBLE_TH),
    ),
}
LETTERS = ("A", "B", "C", "D", "E")


@dataclass(frozen=True)
class Profile:
    """What a profile fixes. Scores of different profiles never share a column without both names."""

    name: str
    bos: str
    boundary: str
    prefix: str
    capitalise: str
    blank: str
    sampler: str
    stops: tuple[str, ...]
    label_stops: bool
    max_new_tokens: int
    numeric: str


PROFILES = {
    "v1": Profile(
        "v1", bos="never", boundary="naive", prefix="eos", capitalise="v1", blank="first", sampler="random-42",
        stops=extract.STOPS_V1, label_stops=False, max_new_tokens=256, numeric="v1",
    ),
    "harness-0.4": Profile(
        "harness-0.4", bos="auto", boundary="naive", prefix="", capitalise="v1", blank="first", sampler="random-1234",
        stops=extract.STOPS_HARNESS, label_stops=False, max_new_tokens=256, numeric="strict",
    ),
    "thai-h6": Profile(
        "thai-h6", bos="auto", boundary="offsets", prefix="", capitalise="thai-h6", blank="run", sampler="first_n",
        stops=extract.STOPS_HARNESS, label_stops=True, max_new_tokens=512, numeric="strict",
    ),
}  # fmt: skip

# MMLU's subjects, with the Thai name that the Thai header takes. The English header takes the underscored name with
# spaces, in lower case, as the harness does.
SUBJECTS_TH = {
    "abstract_algebra": "พีชคณิตนามธรรม",
    "anatomy": "กายวิภาคศาสตร์",
    "astronomy": "ดาราศาสตร์",
    "business_ethics": "จริยธรรมทางธุรกิจ",
    "clinical_knowledge": "ความรู้ทางคลินิก",
    "college_biology": "ชีววิทยาระดับมหาวิทยาลัย",
    "college_chemistry": "เคมีระดับมหาวิทยาลัย",
    "college_computer_science": "วิทยาการคอมพิวเตอร์ระดับมหาวิทยาลัย",
    "college_mathematics": "คณิตศาสตร์ระดับมหาวิทยาลัย",
    "college_medicine": "แพทยศาสตร์ระดับมหาวิทยาลัย",
    "college_physics": "ฟิสิกส์ระดับมหาวิทยาลัย",
    "computer_security": "ความปลอดภัยทางคอมพิวเตอร์",
    "conceptual_physics": "ฟิสิกส์เชิงแนวคิด",
    "econometrics": "เศรษฐมิติ",
    "electrical_engineering": "วิศวกรรมไฟฟ้า",
    "elementary_mathematics": "คณิตศาสตร์ระดับประถมศึกษา",
    "formal_logic": "ตรรกศาสตร์รูปนัย",
    "global_facts": "ข้อเท็จจริงเกี่ยวกับโลก",
    "high_school_biology": "ชีววิทยาระดับมัธยมศึกษาตอนปลาย",
    "high_school_chemistry": "เคมีระดับมัธยมศึกษาตอนปลาย",
    "high_school_computer_science": "วิทยาการคอมพิวเตอร์ระดับมัธยมศึกษาตอนปลาย",
    "high_school_european_history": "ประวัติศาสตร์ยุโรประดับมัธยมศึกษาตอนปลาย",
    "high_school_geography": "ภูมิศาสตร์ระดับมัธยมศึกษาตอนปลาย",
    "high_school_government_and_politics": "การปกครองและการเมืองระดับมัธยมศึกษาตอนปลาย",
    "high_school_macroeconomics": "เศรษฐศาสตร์มหภาคระดับมัธยมศึกษาตอนปลาย",
    "high_school_mathematics": "คณิตศาสตร์ระดับมัธยมศึกษาตอนปลาย",
    "high_school_microeconomics": "เศรษฐศาสตร์จุลภาคระดับมัธยมศึกษาตอนปลาย",
    "high_school_physics": "ฟิสิกส์ระดับมัธยมศึกษาตอนปลาย",
    "high_school_psychology": "จิตวิทยาระดับมัธยมศึกษาตอนปลาย",
    "high_school_statistics": "สถิติระดับมัธยมศึกษาตอนปลาย",
    "high_school_us_history": "ประวัติศาสตร์สหรัฐอเมริการะดับมัธยมศึกษาตอนปลาย",
    "high_school_world_history": "ประวัติศาสตร์โลกระดับมัธยมศึกษาตอนปลาย",
    "human_aging": "การสูงวัยของมนุษย์",
    "human_sexuality": "เพศวิถีของมนุษย์",
    "international_law": "กฎหมายระหว่างประเทศ",
    "jurisprudence": "นิติศาสตร์",
    "logical_fallacies": "เหตุผลวิบัติ",
    "machine_learning": "การเรียนรู้ของเครื่อง",
    "management": "การจัดการ",
    "marketing": "การตลาด",
    "medical_genetics": "พันธุศาสตร์การแพทย์",
    "miscellaneous": "เรื่องทั่วไป",
    "moral_disputes": "ข้อถกเถียงทางศีลธรรม",
    "moral_scenarios": "สถานการณ์ทางศีลธรรม",
    "nutrition": "โภชนาการ",
    "philosophy": "ปรัชญา",
    "prehistory": "ยุคก่อนประวัติศาสตร์",
    "professional_accounting": "การบัญชีระดับวิชาชีพ",
    "professional_law": "กฎหมายระดับวิชาชีพ",
    "professional_medicine": "การแพทย์ระดับวิชาชีพ",
    "professional_psychology": "จิตวิทยาระดับวิชาชีพ",
    "public_relations": "การประชาสัมพันธ์",
    "security_studies": "ความมั่นคงศึกษา",
    "sociology": "สังคมวิทยา",
    "us_foreign_policy": "นโยบายต่างประเทศของสหรัฐอเมริกา",
    "virology": "ไวรัสวิทยา",
    "world_religions": "ศาสนาโลก",
}


def subject_name(subject: str, language: str) -> str:
    """A subject as the header says it; a subject without a Thai name keeps the English one."""
    english = subject.replace("_", " ")
    return SUBJECTS_TH.get(subject, english) if language == "th" else english
