"""What made-up products are called. Every brand is invented."""

BRANDS = (
    "Alderstone", "Amberlane", "Ashgrove", "Barrowdale", "Birchwell", "Blackfen", "Bluecombe", "Brackenfoot",
    "Brightmoor", "Cinderpot", "Cloverfield", "Copperhill", "Corvane", "Dunmarsh", "Elderglow", "Fairhaven",
    "Fernhollow", "Flintlock", "Foxglade", "Galeward", "Glasswater", "Goldcrest", "Greyfell", "Harrowgate",
    "Hazelmere", "Heatherby", "Hollow Oak", "Ironvale", "Juniper Row", "Kestrel & Pine", "Kingsley Nord", "Larkfell",
    "Lindenhof", "Lowtide", "Marlowe", "Mistral", "Moorgate", "Nightjar", "Northbeam", "Oakhart", "Otterline",
    "Pinecrest", "Quillon", "Ravensby", "Redbarn", "Rosewick", "Saltmarsh", "Silverbrook", "Stonepath", "Sundial",
    "Tamarack", "Thornbury", "Umber", "Valewood", "Vireo", "Westerly", "Whitcombe", "Wildrose", "Windermark", "Yarrow",
)  # fmt: skip
MODELS = (
    "Aero", "Alto", "Arc", "Atlas", "Basis", "Bolt", "Breeze", "Cadence", "Cairn", "Classic", "Comet", "Contour",
    "Core", "Crest", "Dash", "Delta", "Drift", "Echo", "Element", "Ember", "Essence", "Falcon", "Flow", "Forge",
    "Glide", "Harbor", "Haven", "Ideal", "Junction", "Kite", "Lumen", "Meridian", "Motion", "Nova", "Onyx", "Orbit",
    "Pilot", "Prime", "Pulse", "Quest", "Rally", "Ridge", "Sierra", "Solo", "Summit", "Tempo", "Terra", "Trail",
    "Vertex", "Zephyr",
)  # fmt: skip
COLOURS = (
    "black", "white", "slate", "navy", "forest green", "rust", "sand", "burgundy", "sky blue", "charcoal", "olive",
    "cream", "teal", "graphite", "copper", "rose",
)  # fmt: skip
SIZES = ("XS", "S", "M", "L", "XL", "small", "medium", "large", "single", "set of 2", "set of 4", "family pack")
#: What it is, where it belongs, and what it costs about, in cents.
THINGS = (
    ("Rain Jacket", "Clothing > Jackets", 12900), ("Down Jacket", "Clothing > Jackets", 18900),
    ("Fleece Pullover", "Clothing > Midlayers", 6990), ("Merino Shirt", "Clothing > Shirts", 5990),
    ("Linen Shirt", "Clothing > Shirts", 4990), ("Denim Jeans", "Clothing > Trousers", 7990),
    ("Hiking Trousers", "Clothing > Trousers", 8990), ("Wool Scarf", "Clothing > Accessories", 2990),
    ("Leather Belt", "Clothing > Accessories", 3490), ("Running Shoe", "Footwear > Running", 11900),
    ("Trail Running Shoe", "Footwear > Running", 12900), ("Hiking Boot", "Footwear > Boots", 17900),
    ("Chelsea Boot", "Footwear > Boots", 14900), ("Canvas Sneaker", "Footwear > Sneakers", 5990),
    ("Trekking Tent", "Camping > Tents", 24900), ("Sleeping Bag", "Camping > Sleeping Bags", 13900),
    ("Gas Stove", "Camping > Stoves", 5490), ("Day Pack", "Camping > Packs", 7990),
    ("Road Bike Helmet", "Cycling > Helmets", 8990), ("Bike Light", "Cycling > Lights", 3990),
    ("Floor Pump", "Cycling > Tools", 4490), ("Espresso Machine", "Kitchen > Coffee", 44900),
    ("Coffee Grinder", "Kitchen > Coffee", 9990), ("Chef Knife", "Kitchen > Knives", 7490),
    ("Cast Iron Pan", "Kitchen > Cookware", 5990), ("Stand Mixer", "Kitchen > Appliances", 29900),
    ("Water Kettle", "Kitchen > Appliances", 4990), ("Desk Lamp", "Home > Lighting", 5990),
    ("Floor Lamp", "Home > Lighting", 12900), ("Wool Blanket", "Home > Textiles", 8990),
    ("Bed Linen", "Home > Textiles", 6990), ("Office Chair", "Home > Furniture", 24900),
    ("Bookshelf", "Home > Furniture", 15900), ("Cordless Drill", "Tools > Power Tools", 12900),
    ("Socket Set", "Tools > Hand Tools", 8990), ("Garden Hose", "Garden > Watering", 3990),
    ("Hedge Trimmer", "Garden > Machines", 13900), ("Bluetooth Speaker", "Electronics > Audio", 7990),
    ("Wireless Headphones", "Electronics > Audio", 14900), ("Mechanical Keyboard", "Electronics > Computers", 11900),
    ("27 Inch Monitor", "Electronics > Computers", 27900), ("External SSD", "Electronics > Storage", 9990),
    ("Action Camera", "Electronics > Cameras", 29900), ("Building Blocks", "Toys > Construction", 3990),
    ("Board Game", "Toys > Games", 3490), ("Plush Bear", "Toys > Soft Toys", 1990),
    ("Yoga Mat", "Sports > Fitness", 3990), ("Kettlebell", "Sports > Fitness", 4490),
    ("Tennis Racket", "Sports > Rackets", 13900), ("Swim Goggles", "Sports > Swimming", 2490),
)  # fmt: skip
SHOP_WORDS = ("Outlet", "Store", "Direct", "Trading", "House", "Market", "Supply", "& Sons", "Home", "Online")
