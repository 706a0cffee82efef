"""Phrases that tell who speaks next after a reply, by language: data for `reply_endings.py`, as regular expressions
without groups. Letters count as small ones, `'` stands for every apostrophe, and code has been replaced by `x`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class EndingPhrases:
    """One language's."""

    known_by: str
    """Common words or letters; the language with most of them is the reply's."""
    opening: str
    """What may stand before an announcement."""
    announced: str
    """After the opening: the model says what it is about to do. No verbs of waiting or stopping."""
    now: str
    """Makes an announcement certain."""
    handed_over: str
    """Somewhere in the last paragraph: the user is asked to say or to do something."""
    conditional: str
    """In the last sentence: something else comes first."""
    ahead: str
    """In the last sentence: it could be an announcement …"""
    settled: str
    """… unless that was part of one of these: what was done, cannot be done, or is advised."""


_I = r"(?:i will|i'll|i am going to|i'm going to|let me|let's|let us)"
_RESTS = (
    r"(?:know|wait|leave|stop|be|stand|not|hand|await|hear|pause|end|conclude|summari[sz]e|remember|keep|note|use|follow"
    r"|avoid|explain|never|always|point out|mention|consider|assure|recap|call|say|admit|sum)\b"
)
"""Verbs after "I will" that end a reply instead of announcing work."""

ENDING_PHRASES = (
    EndingPhrases(  # English
        known_by=r"\b(?:the|is|are|was|were|has|have|it|this|that|and|to|of|in|all|with|for|done)\b",
        opening=r"now|next|first|then|after that|okay|ok|alright|great|good|so|and",
        announced=rf"{_I} (?>(?:now |first |next |then |also )*)(?!{_RESTS})\w+",
        now=r"\bnow\b",
        handed_over=(
            r"\b(?:let me know|feel free|would you|do you want|shall i|should i|hope this|happy to|just ask|up to you"
            r"|your (?:call|choice|decision|approval|confirmation)|if you(?:'d)? (?:like|want|prefer|wish)"
            r"|please (?!wait|hold|stand by|bear))"
        ),
        conditional=(
            r"\b(?:if|unless|once|whenever|when|until|after|as soon as) you\b|\byou (?:can|could|may)\b"
            r"|\b(?:later|next time|from now on|in (?:the )?future|going forward)\b"
        ),
        ahead=(
            r"\b(?:i|i'll|i'm|let me|let's|let us|we|we'll|my)\b|\bwill now\b"
            r"|^(?:next|now|then|on to|time to)\b|\bnext step\b"
            r"|^(?:(?:okay|ok|alright|great|good|so|and|now|next)[,.:!]? )?(?!(?:every|any|some|no)thing\b)\w{2,}ing\b"
        ),
        settled=(
            r"\b(?:i|we)(?:'ve| have|'d| had)? (?:(?:also|only|just|already) )?(?:\w+ed|ran|wrote|found|made|left|kept"
            r"|built|can|can't|cannot|could|couldn't|won't|would|wouldn't|might|do not|don't|did|didn't|am not|think"
            r"|believe|see|recommend|suggest)\b|\b(?:i'm|i am) (?:sorry|afraid|unable|not)\b"
            rf"|\b(?:now,? )?{_I} (?:now )?{_RESTS}"
        ),
    ),
    EndingPhrases(  # German
        known_by=(
            r"\b(?:der|die|das|dem|den|ist|sind|und|nicht|mit|im|ein|eine|einen|wird|wurde|auf|für|von|alle|alles|ich"
            r"|zu|zum|noch|nur|auch)\b|[äöüß]"
        ),
        opening=r"jetzt|nun|zuerst|zunächst|dann|danach|anschließend|als nächstes|als erstes|gut|okay|ok|also|und",
        announced=(
            r"(?:ich )?werde (?:ich )?(?!warten|auf\b|nicht)\w+|lass(?:en sie)? mich (?!wissen)|schauen wir|sehen wir"
            r"|(?:ich )?(?:sehe|schaue|prüfe|lese|suche|ändere|starte|behebe|korrigiere|schreibe|beginne|fange"
            r"|aktualisiere|ergänze|erstelle|führe|passe|öffne|untersuche|teste|mache|gehe|stelle|lege|füge|setze"
            r"|entferne|ersetze|baue|überprüfe|durchsuche|kümmere|wende)"
            r" (?:ich|mir|mich|jetzt|nun|zuerst|zunächst|die|den|das|mit|alle)\b"
        ),
        now=r"\b(?:jetzt|nun)\b",
        handed_over=(
            r"\b(?:bescheid|lass(?:en sie)? (?:es )?mich wissen|wenn (?:du|sie) (?:möchte|will|mag|woll)\w*"
            r"|falls (?:du|sie|gewünscht)|auf wunsch|bei bedarf|gerne?|bitte (?!warte)"
            r"|(?:deine|ihre)\w* (?:entscheidung|zustimmung|freigabe|bestätigung|antwort|rückmeldung))\b"
        ),
        conditional=(
            r"\b(?:wenn|sobald|falls|bis|nachdem|ob) (?:du|sie|ihr)\b|\b(?:du kannst|kannst du|sie können|können sie)\b"
            r"|\b(?:später|künftig|in zukunft|ab jetzt|von nun an)\b"
        ),
        ahead=(
            r"\b(?:ich|mir|mich|wir)\b|^(?:jetzt|nun|zuerst|zunächst|dann|danach|anschließend|als nächstes|weiter)\b"
            r"|\bnächste[rn]? schritt\b"
        ),
        settled=(
            r"\b(?:ich|wir) (?:habe|haben|hatte|konnte|kann|könnte|würde|empfehle|denke|glaube|war|bin)\b"
            r"|\b(?:habe|haben|hatte|konnte|kann|könnte|würde|empfehle|bin) (?:ich|wir)\b"
        ),
    ),
    EndingPhrases(  # French
        known_by=(
            r"\b(?:le|la|les|est|sont|et|des|un|une|pour|dans|du|avec|que|je|vous|sur|au|ce|cette|pas|tous|toutes)\b"
            r"|\b[cdjlnqs]'|[èêùœ]"
        ),
        opening=(
            r"maintenant|à présent|ensuite|puis|d'abord|tout d'abord|pour commencer|bien|parfait|d'accord|ok|alors|et"
        ),
        announced=(
            r"je vais (?>(?:maintenant |d'abord |ensuite )?)(?!attendre|m'arrêter|vous\b|te\b|en rester)"
            r"|je (?:vérifie|lance|corrige|regarde|modifie|lis|cherche|commence|continue|poursuis|passe|mets|crée"
            r"|ajoute|teste|examine|exécute|remplace|supprime|adapte|ouvre)\b|(?:laissez|laisse)-moi"
            r"|(?:commençons|regardons|voyons|vérifions|examinons|passons|lançons|continuons|cherchons|corrigeons)\b"
        ),
        now=r"\b(?:maintenant|à présent)\b",
        handed_over=(
            r"\b(?:n'hésite[zs]? pas|(?:dites|dis)-(?:moi|le-moi)|(?:faites|fais)-(?:le-)?moi savoir|veuillez|merci de"
            r"|j'attends|(?:votre|ton) (?:accord|décision|validation|confirmation|réponse|choix)|à vous de"
            r"|si (?:vous|tu) (?:le )?(?:souhaite|veu|voule|préf|désir)\w*|s'il (?:vous|te) plaît(?! patient))"
        ),
        conditional=(
            r"\b(?:si|dès que|une fois que|quand|lorsque|après que|tant que) (?:vous|tu)\b|\b(?:vous pouvez|tu peux)\b"
            r"|\b(?:plus tard|à l'avenir|désormais|dorénavant)\b"
        ),
        ahead=(
            r"\b(?:je|nous|mon|ma|mes)\b|\bj'|^\w+ons\b"
            r"|^(?:maintenant|à présent|ensuite|puis|d'abord|tout d'abord)\b|\bprochaine étape\b|\ben cours\b"
        ),
        settled=(
            r"\bj'(?:ai|avais|y ai)\b|\bje (?:ne|n'\w+|peux|pourrais|recommande|suggère|propose|pense|crois|l'ai"
            r"|les ai|vous|suis)\b|\bnous (?:avons|pouvons)\b"
        ),
    ),
    EndingPhrases(  # Spanish
        known_by=(
            r"\b(?:el|la|los|las|es|son|y|un|una|con|para|que|del|en|está|están|todas|todos|se|por|lo|al|no|ya|voy)\b"
            r"|[ñ¿¡]|ción\b"
        ),
        opening=(
            r"ahora mismo|ahora|a continuación|primero|en primer lugar|luego|después|entonces|bien|vale|perfecto"
            r"|de acuerdo|y"
        ),
        announced=(
            r"(?:voy|vamos) a (?!esperar|parar|detener|dejar)|(?:déja|déje|permíta|permíte)me (?!saber)"
            r"|(?:yo )?(?!esper|estar|podr|ser|tendr|deten|quedar|har[ée])\w+[aei]ré\b"
            r"|(?:reviso|ejecuto|corrijo|actualizo|miro|leo|busco|empiezo|comienzo|continúo|sigo|paso a|abro|añado"
            r"|agrego|modifico|compruebo|verifico|cambio)\b|(?:veamos|revisemos|empecemos|comencemos|sigamos)\b"
        ),
        now=r"\bahora\b",
        handed_over=(
            r"\b(?:av[ií]sa(?:me|nos)|av[ií]seme|dime|dígame|(?:hazme|hágame)(?:lo)? saber|házmelo saber|no dudes?"
            r"|por favor,? (?!esper)|quedo (?:a|atent)|espero (?:tu|su)|(?:tu|su) (?:decisión|aprobación|confirmación"
            r"|respuesta|visto)|si (?:lo )?(?:quiere|prefiere|desea)s?)"
        ),
        conditional=(
            r"\b(?:si|cuando|en cuanto|una vez que|hasta que|después de que) (?:me|lo|tú|usted|quiere|prefiere|desea|"
            r"necesita|confirm|aprueb)\w*|\b(?:puedes|puede usted|podrás)\b|\b(?:más tarde|en el futuro|en adelante)\b"
        ),
        ahead=(
            r"\b(?:yo|voy|vamos|me|mi|mis|nos)\b|\w+[aei]ré\b|\w+[aei]remos\b"
            r"|^(?:ahora|a continuación|primero|luego|después)\b|\b(?:siguiente|próximo) paso\b"
            r"|^\w+(?:ando|iendo|yendo)\b"
        ),
        settled=(r"\b(?:me (?:parece|temo)|mi (?:recomendación|sugerencia|opinión))\b"),
    ),
    EndingPhrases(  # Portuguese
        known_by=(
            r"\b(?:o|a|os|as|é|são|e|um|uma|com|para|que|do|da|dos|das|não|em|no|na|foi|foram|está|todos|todas|se|por|ao"
            r"|pela|pelo|você|vou)\b|[ãõ]|ções\b"
        ),
        opening=(
            r"agora|em seguida|a seguir|na sequência|primeiro|primeiramente|depois|então|certo|ok|bem|ótimo|perfeito|e"
        ),
        announced=(
            r"(?:eu )?(?:vou|irei) (?>(?:agora |primeiro )?)(?!esperar|aguardar|parar|deixar)"
            r"|vamos (?!esperar|aguardar)"
            r"|(?:deixe-me|deixa eu|deixe eu|permita-me) (?!saber)"
            r"|(?:eu )?(?!aguard|prepar|compar|separ|declar|repar|par)\w{3,}arei\b|corrigirei\b"
            r"|(?:executo|corrijo|verifico|atualizo|leio|procuro|começo|continuo|passo a|abro|adiciono|altero)\b"
        ),
        now=r"\bagora\b",
        handed_over=(
            r"\b(?:me avise|avise-me|me diga|diga-me|me informe|me conte|fique à vontade|aguardo|fico (?:à|no aguardo)"
            r"|por favor,? (?!aguard|esper)|(?:sua|tua) (?:decisão|aprovação|confirmação|resposta|escolha)"
            r"|se (?:você )?(?:quiser|preferir|desejar|precisar)\w*|caso (?:queira|prefira|deseje|precise))"
        ),
        conditional=(
            r"\b(?:se|quando|assim que|depois que|até que|logo que) (?:você|vocês|me|quiser|confirmar|aprovar)\b"
            r"|\b(?:você pode|podes)\b|\b(?:mais tarde|no futuro|de agora em diante)\b"
        ),
        ahead=(
            r"\b(?:eu|vou|vamos|irei|me|meu|minha|nos)\b|(?!\w*parei\b)\w+arei\b"
            r"|^(?:agora|em seguida|a seguir|primeiro|depois)\b|\bpróximo passo\b|^\w+[aei]ndo\b"
        ),
        settled=(r"\beu (?:não|já|posso|poderia|fiz|\w+ei|\w+i)\b|\bminha (?:recomendação|sugestão|opinião)\b"),
    ),
    EndingPhrases(  # Chinese
        known_by=r"[\u4e00-\u9fff]",
        opening=r"好的?|那么|现在|接下来|接着|然后|随后|首先|下一步|下面|明白了",
        announced=(
            r"让我们?(?!知道)|我们?(?:现在|接下来|先|马上|这就|首先|再|就|会|将|要|来|去|继续|开始|准备|打算|需要先)"
            r"(?!等|停|在此|建议|不)"
        ),
        now=r"现在|马上|这就",
        handed_over=(
            r"告诉我|请(?!稍|等)|等(?:待)?(?:您|你)|(?:您|你)的(?:确认|决定|批准|回复|选择)|让我知道|随时|欢迎"
        ),
        conditional=(r"如果(?:您|你|需要)|如需|若(?:您|你|需)|(?:您|你)(?:可以|确认|同意|批准|决定)|以后|今后|稍后"),
        ahead=r"我|^(?:现在|接下来|接着|然后|随后|首先|下面|先|正在|好的?[，,])|下一步",
        settled=r"我们?(?:已|刚|没|不能|无法|不|建议|认为|觉得|可以|能|[^，。；]{1,12}了)",
    ),
    EndingPhrases(  # Japanese
        known_by=r"[\u3040-\u30ff]",
        opening=r"はい|了解しました|分かりました|では",
        announced=(
            r"(?:(?:それでは|では|まず|次に|続いて|続けて|これから|今から|さっそく|早速)[^。]*(?<!でき|あり|なり|され|られ|思い|待ち)(?<!い|れ)"
            r"|[^。]*(?:てみ|ていき|始め))(?:ます|ましょう)[。：:]?$"
        ),
        now=r"これから|今から|それでは|では",
        handed_over=(
            r"(?<!お待ち)ください|お願い(?:し|いたし)|お待ちして|いただ(?:け|きた|きました|いてから|いたら)|でしょうか|ますか|ませんか|いかが|お申し付け"
        ),
        conditional=r"(?:場合|必要であれ|よろしけれ|ご希望)|か[。]?$|今後|後ほど",
        ahead=r"(?:ます|ましょう)[。：:]?$|^(?:まず|次に|続いて|これから|今から)|中です|次のステップ",
        settled=r"(?:でき|あり|なり|され|られ|思い|てい|れ|ござい)ます",
    ),
    EndingPhrases(  # Russian
        known_by=r"[\u0400-\u04ff]",
        opening=r"теперь|сейчас|далее|дальше|затем|потом|сначала|сперва|для начала|хорошо|отлично|итак|ладно|и",
        announced=(
            r"давай(?:те)? |позволь(?:те)? мне |я (?>(?:сейчас |теперь |сначала |также )*)(?!жду|подожду|буду ждать|не "
            r"|могу|хочу|думаю|считаю|рекомендую|предлагаю|советую|вижу|понимаю|останов)\w+[ую]\b"
            r"|(?:проверю|запущу|посмотрю|исправлю|обновлю|добавлю|изучу|найду|начну|продолжу|перейду|запускаю|проверяю"
            r"|начинаю|перехожу|приступаю|продолжаю|исправляю|смотрю|читаю|ищу)\b"
        ),
        now=r"\b(?:теперь|сейчас)\b",
        handed_over=(
            r"\b(?:дай(?:те)? (?:мне )?знать|сообщи(?:те)?|скажи(?:те)?|напиши(?:те)?|подтверди(?:те)?|жду ваш\w*"
            r"|жду (?:подтвержд|ответ|решени)\w*|ваш\w* (?:решени|подтвержд|согласи|ответ)\w*"
            r"|пожалуйста(?!,? подожд)|обращайтесь)"
        ),
        conditional=(
            r"\b(?:если|когда|как только|после того,? как|пока) (?:вы|ты|хотите|хочешь|нужн\w+|потребуется)\b"
            r"|\b(?:вы|ты)? ?можете\b|\b(?:позже|в будущем|впредь)\b"
        ),
        ahead=(
            r"\b(?:я|мы|мне|давай|давайте|буду|мо[йяи])\b"
            r"|^(?:теперь|сейчас|далее|дальше|затем|потом|сначала|сперва)\b|^\w+[ую]\b|\bследующий шаг\b"
        ),
        settled=(r"\b(?:я|мы) (?:уже )?(?:не|могу|мог|можем|рекомендую|предлагаю|считаю|думаю|вижу|\w+(?:л|ла|ли))\b"),
    ),
)
