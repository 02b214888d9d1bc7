# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Message descriptors of every gRPC API, made by hack/gen_proto.py from proto/. Do not edit.

One entry an API version: a protobuf FileDescriptorSet (the files and their imports), zlib, base64.
"""

from __future__ import annotations

SETS: dict[str, str] = {
    "dra/v1": (
        "eNq1VMtO20AU7SQk4Ou2QlcIWUBT5D7EyohUSAga1AeVoEiITtVd1dSJR9SK8ZiZ2Cp/0G1X/ZZu+KJ+ACtUz4yTpsghVVBXHp+5PufMvWcM"
        "v2yYD4S/nm2s5w8vEbzPsdHbkl7IvV7aYRHre0nvxPOTUHqqJNtwD6H2OvLDU1wBK/ZPmUz8LnPIKlmz6B8A56GahoFT0bhaIsKM2naqGtJr"
        "9yMsH/GAHQuW+IJRJnkqukxSdpYy2ccW1LtKS+b81TW7+cS72ZynndHiI/eSwEo5vUx4LBl+vsa/P4n/JjYjLt/EfXE+sLCUgT0Cq6702HnR"
        "LbXEd1DL/ChlulN2c2cKBwMD1DBtV7aIm5Y2dnjwFzAbsCzM3RcnfzpJd0+X08FnuAA1JgQXxYTNi3tBoG4q8RHcE2aMbZ0KLWTRuwV4pDBc"
        "BivhPNIVBdOcAtQuPgTbqLVHcgMG0gWP4X43CNtFURhIZ8Zo5KhxcRBIbMCc/JI3IS9waopj/w6d1chB8I2QVzZY7UGB+wkeqL59iJP/E8kr"
        "Ao1xAsVsOtcU3v5LJMbzlcby66RYvv87lq2pPJQFc3NMg4fHHwaLjASr+bMC1h59eRylJ2GM3wkslF1F3JnuAuvRLj2/ze3HHwQWyyeBrWkn"
        "aHzt3i4Anbr+sT/7DfFL8Qw="
    ),
    "dra/v1alpha2": (
        "eNrtVs1u00AQVn7aJNM2rRalDemvVqXlgFzRH0AIIVX0UA5U7VYtJxQ28YpYuHbqXQdx4MQTIIR4FZ4D8Rq8ACfW63WcpLbb0Cs37+zM9307"
        "O7Nj+FMF7DHu+l6bbfUeUrvbodtbXHh+W/geM42u5woXLb1/wg3LNWjXMiJ3I3LH6zB3zhzT9Y6pRy+YYB5Hc1Dw6Id6bi13f5oEn/hnHuqn"
        "fWCiUQ6pY9oMmVDrKYgXNuU8xlEAU9uGkSXAGGUnyWBDLNbFAEv+liyDYKgBZcc12ZFc14sSuEL6a3QEJQns24LXJ9YKknM3m/PAs3rM27dt"
        "t02F5TpEBZMIBP/OwXyyD+rAQqiPsEufcXHrpKbBIQtqdIT9lTywrdO6k82znxRKkhHxJ6gl+surrTpST7+uokM+yyY/Goq5kucRTLwLK9kR"
        "CEExiFHsFaK+sQMzUUAo9k2K2L1xxMYfoyovYCHFFRGoWA4X1AlJb1CBw0gvdTCJYfBnWYPJXknZQGcAVAjPavmCBZ1XGPfg+1E0GQDCX3Kj"
        "p+77JcpoQbUffU5tn+lqffpPUhQCGUHEXwuwlBWA6gAt17Wbvb6AMikGFrQE0/IVtpx3em9CSZ8MbegQqpc+dYQlPur9SSV+I1v8iY4h5Sga"
        "zQcFITRISYIUSEEa0GuYDezcttpM75YVxZjlIk4DBFK29Bd6C0gfbBC7orAfj4N9qlBC+CkeL9AKzMj3kMue1OCgclfSRvzgarlqbbJOpM6w"
        "MQpEfeM9uJvKK++vFDKHMZJELzGG8kmcY31vugD1Cn6UYN70aDx35UIP3HJka9xgPONveWgcyZfl2GNd6rFIqn6pZS1VgpLnXdqOeiA2oEWo"
        "tIMJ1vQtU5WgnFfKcGaZaBkg3FT9UwhjlUWNs02YjeQ1O2qS64lX9Ybnu4BGrLo5GhOOwkfZt5/270DqPGUHP4fFxLTwrutwhlZhqm1aTZP1"
        "rOg5rBCQpoPQgr/nZf9KgDOn+z+zQ5ldheWUxIS53f6Vg2LgId/ZOwl3gNYH2jq1chv3rvHSF9mBWqIatDEcn3aPjc1r/UKm1qRquJ2/au7L"
        "RQ=="
    ),
    "dra/v1alpha3": (
        "eNqlVt1uHDUU1mSzye7ZdlNZTbosoQSLNhVFE8gPVAUuIgpKUYlah7ZXKPXuWGSUyczW9izKBVc8AeK1uOpLICHxAlxhezw/O52ZbJo7+9jn"
        "+44/H59j+K8PmDMRxXzMtqaf02ByQre3hOTxWMacee6ERzJC66cPhOtHLp34brrdTbfjj+HGCxZ6EX9KOT1jknGBbkCL018HzoZz7xrRQ/xm"
        "AQZHGTCxKAc09AKGPFidGohvAypEjmMAetuu2xSAW2Yn1WAzLP5ZgWXhiixFMDSEThh57FDNB4sKuEuyOTqEZQUcB1IM2hstxbnbzPmI+1PG"
        "94MgGlPpRyExziQFwf86sFa9B53ArSQ+wl7HTMgri1oHh3xYpSX2H9WBAyvrTjPPfpUrqUbEv8Fq5X51tf1QxZPlVXrIr5vJD2d83tK5hIl3"
        "4XazB0KwqH0Me5eYMQ7heuqQBPtzTbB7lwk2H5SjPINbNVsRga4fCknDhHSODJxFemydSQ6Df1c5WL2rSg30HIBKyf1RLJl+ea3LHnw/9SYF"
        "IPyHUz51tq8yjBH0M+8XNIiZzdaH7xSKQSAlRPxnC9abHNAAYBRFwfE0C6BDFrUFrcM1VYX98Be71jahLyU2dAD91zENpS/P7fqSCf5uc/DP"
        "rA/ppN5oTSeEtCDLCqRFWsqAXsKKtovAHzO72jEUl0wXeaQRSMe3I/QKkD1YEbtrsL+8DPaRQUngeyKfoNtwXdVDod6kBQej3bI14k/fTlcb"
        "m8oTFWfyMFrEjPEevFfLq+5vOWFOfBSJnWIMnWe5xvbebALaGfzdgzWP07Tv7mypiW24ndQ2nKM9438caJsupNKmq7NbTOg4TffcoJty7Hsm"
        "z7pED7OX0Sq8jE1YSTmPT0x7tm2sz2ebtoRhHspx2Sfpb180X2ndh4AMRM0K/h7eP1RV9ClnE8pZocaZtqSiXxprKdLytpKS7bhGImKX8V+O"
        "epyVQGIShYKhH0pI2zlSk19CI74LJT9PyYavoFcw64s4Zef2gvQQfQXtaaEK3WnkSqlI4vNw4YGDf6qUJTvMh9Abe/6xx6Z+Wvq7BJTpUWJB"
        "N6HNOI+4zY5kgg/gA436PJxcVe43juqdNVA2xiclrN1ZEeo9KyUfXST5N7OSb17AViX6Xo082ZEyVZ2iqhg2tNsTX8j90HtJ5fikLKz6NHzU"
        "sMfCP4YuL/whtGj3mx/czEeE5N7b6nu+qAkRg5tV6Y3uXJT+Ju7h3fleCTpVVbjyUtHmxdeeUN2bNz/QVBXxOjHRJ7MwTbcyvD/X3oT1M2e0"
        "ZOrzzv/7qoIm"
    ),
    "dra/v1alpha4": (
        "eNqlVNlOwkAUTdmkFxcyIYQALqkixAeIgInR+OQStxDTxGcs7SQ2LK0zlITP8Gf8Cp989GvsLKwpS+LbzLl3zrn33NvClwppixiVwanRcd+N"
        "esW/lF3i9B0Ul1hNe4LodcewuygPas/oYuoaJs4oB0pJ1ScASkLYs61MiOPsiBBEWDgT5hA/a3eQazgWfiHYNQjWMXU8YmKq4w8P0z4qQsxk"
        "WtTnD5cS1Z3yqIwyr0GXYe1bgXwwEXWdHsXocY6pOmFa9k7I0NtenwxHYtk3SEzBrNM2HkoH2BFdQnRgdDzMu09UC0u1RlK6eHMROle0ZqAt"
        "42ZOYMPCA9uvU3aTnCjc8IA+SkApiGJCHCInIS7apwIxkYkOYYsIu5t8epxS1Tcl2GAYyoHqOk6HZ0imOANYFO1DQqg1p+YLAuIJR7BtWnZT"
        "JtkWzUSEho+KKh4sqt3DLmv6tef+dxt+FNhbRCUtfJ7jqs/OaPHLwI1ordqIq9mNKK5QC9qJswX2jFsaT1qZmnT1V4EIe4cwpII2HRVWfQnc"
        "/Ozxeh8MakM62EBUXG2xkCqtO4tWjP+can8dWYRj"
    ),
    "dra/v1beta1": (
        "eNq1VE1L3FAUJZmPmjsq5aFl8KNK7EJaiDgiSFc66qKIVgKKu+FNchnCxLz4XjIwlkLpqtuuu+oP6n/qvI+ZjpJpB6fubk7uu+fk3PMCX+Zh"
        "OeR0p7fbxozu7gxqL+UsY2SreyC8iHndvI0xZl7a7Xg0jYQnW0y7ewaV45hGt2QNnITeokhpgHVr09p2/D8AeQmlPArrtsJlSQiU5et6SUGq"
        "dimsXrAQLzmmlKOPguU8QOHjXY4iI02oBpJLDOaXtmuNt94UCj0lzzcn3a82rBVziJQlAgk+IjmfiuRvI7UCcZpkvD/UsfIJamOw9KeLfeOb"
        "LMk1VHo0zlF5VmscPlXGUIWvx723Dyz3vtDnkQWn8CLEXjT4BOPBu6nIT9QZf3iWLEEFOWfcbF0/uN8tqOpOsgULXK+2pZKi2Bx/3oAXEiOr"
        "4KSMxarDTJqTgHxLNqCm2VpjWQINqYY3sBiEUcs0RaGolzXHANUqPoTCDWBd+nGVpM+YvG82vJ7EYozvPKL5OPXSJw8tTN/nf6Xv5mH6mk8X"
        "UpS//Ql+j4wYRccai07jlw3OiX90GeedKCE/LFgqunbkcIYbq9a9cjTznSc/LXhVvBjSnGmrWuHxf0hGu6r+83u/Ac+w+78="
    ),
    "health/v1": (
        "eNp1Uk1PwkAQtYAgU9SyMaaAX+FEiAHBg0dDxKRGU81CQzw1tV1tFbqV3fZfe/EX2O7SQKLedt57M/NmduC7BIc+cebc7yeDvnz1oiXlFBWS"
        "QbsFDZN6ZOZw18eE0XjpEobJZ0wYbxvQ/ItkEQ0ZQV2oeCQJUkhXzooddaj1kkFvLCBD9MG5oP0EmiTuPBLy4DUgS9SCakTp3A6dBUkrKJ0q"
        "3skAM43RKagyV9IFQYOEMkH7S4HaZi90DmVJi1rq8GDtZt0UrzSoA2W5C1F6T3qXlSbc4THDKz4dsz53GLfjyHM48WwepH6KaVIR72eEJfFp"
        "CqNrOJJZtusT90NoacxtRlwaekwvibSG1NxkkqlUTKQA6VBZEMacN6Jvi5HzsHsFtU17SIWKZd6bjzNT28oC43b0MDWeNQXtQtUy87AwfIf6"
        "GI/y71stywL0+2fRcbaEf8+hefIfLQ/iQnkpi8O6/AFC0sYk"
    ),
    "health/v1alpha1": (
        "eNp9UklPwkAUtiDbKyrMwRQw0VQPhkOBevBoiJhgNNUUCPHUjO1oG0unMlN+jX/Um+0MDcTt+C1vf/BRgiOf4JD7vdUAh7GPBz2JjXhJOUXV"
        "nNY70LKoR+aYu75NGE2WLmE2eU8I47oF7d9EFtOIEdSHikdWQUppyknxXDUPjTytMRLCWNS0c5v+CA0p3Hok4sFLQJaoA7WY0tCJ8IKkeZTz"
        "ml3NCCvF6BhUGSvlgpBBUplB/1Sgvl0LmVCWssilmu3vPW1K22snMqAstyMK7G/PIbNOOOYJs9cu1IVmiBl3ktjDnHgOD9Leimlo0T7IhJnk"
        "pymNrvJLOK5P3DfhpQl3GHFp5DFtV4S1pOc6s0ylYyINSIPKgjCGX4lWEuPnsHsJ9e32kAqVmXVnPcytxk4GxjfD++n4qaGgPajNrBwWzBU0"
        "R/YwP+h6cRjQz1uj080q/nyT9tn/JvkufeW5LJ7v4gvULdW2"
    ),
    "nodeops/dra/agent/v1": (
        "eNqtV81u20YQLiXrxyPFSTZuoSpJ6zAJ4hSo3ThAgKKnOE4aA0XQMql7VClyYzGWSIWknPreQ6+9tJeib9FLn6CXos/QN+n87JKUIzkpkNt+"
        "w9nd+flmZgk/bsBGnIQ6mWbbYepv+4c6zreP78hia5omeaLWjcYWamzJh+M77gVYO9BpFiWxp1/OdJa7v9XgfCHKpkmcadWD1rGIes6Gs7nq"
        "WagUrEzw3F6NxbxWt+B8lvu5HoRRqoM8SU96df68xuI9K1XXoHs0G+qxzgdpkuS9FdbqGJmHIvUpqFQfRlmenlSOa7DiRfulPBGvDsKo0Ix0"
        "1mtu1OlqFO+VUnUZVikeg9if6F6Lj2uT4Ali1Yd2qA9TP9Rhry3fLHbvwMWv8NIHYz+aZCZm6gqehhuzqR9oE6FS4O6Dqm4xMb0LzYAluKG+"
        "2dm5vLUoQVu8yzOq7l81aLBEXYD6LArNZbSkVLA3JhW0njesfsow2jFNwgzjTiHiNfk+TfXUT9F3CnPbK7D6AlphGlHqOaqdnWtn2LzHmp7d"
        "oT6AJqV/lplwG6Q+h/ZzPxrPUsxVm0+9uvjUR6LlFerEH+2n40ingyHxZ1X4Y2S7xB9kbpYn0yl6A8JcA90ZdCp2FtFzKtHDWPhx9kpTLGoS"
        "C4vVPYyFPo4CtLrOVl9ZbPUeK3lW2f3dgabIJPzJ2F5Ja4qSaJo0GqQ+gnY2wiQMMOecx8fvoSsk2Q9/chwyNRUy2nQWWH0MHS4KY26DPwMV"
        "hEh2O7A6sKe7vzjQMqEm+iRTnfp5WfmlgOzP9Q+5JRyt1To0gmQW52xk3RNA0udRmkmFO54A2j/2UdhgIa/Vh+QHFXsUI8dI3mK8H7v/OHDu"
        "wciPD7UtO6wB5Cwb1vVoSeEzRVVDL7u2brDcm6NkHOq0CJ7BFDuyLkkx5CucYwHsyUgHR6YKBBCf8miik1luzTOQrk61n2GgDL8FqTWoDU9M"
        "G8HV7iq0BnK3+2cN1qxHZacNWCJutT0LkXCNwB+PxbPOzsYSujGbH6CiJ+qVPlN/6z4jdBqjA2hHQSfBRAqM0GGS5zpmMnW9UsDlHMVhFB/a"
        "JrGsnEXLK9QpgkONJ0lDxuQJokz4z3PMXZvFAtxnAKWzXDeMDE0NIvlE56MktPUkqEKUOrtnG+xDuPQljh6dJTMkQbacaRiFIIlzP4rxTjm7"
        "FLjfw/r8MSa9jwEKJdv4N5ckxOqVp1T20lB5XWNhFztV/rXT5e+uy3ySaFqX3V8duDQnNi7cK4eAc2bjO9X/H8M5M6+5e1geu4t3exVVb36j"
        "+we10OVdWzIT46gv2nYpUFcxA1JRA1+6lIOfRXI/V7uwGsU4mWIK1QpbeOMs//aNslduq3CrwU3QcutfB9bmd1Gd6TicJhF2TPGhwGobLlX9"
        "HmRJcKRtt1XVT0/5y7zj9dOOX7fxp/FFvksv7pbC+zIudcrzp2HGpUB1E9ZG2h/no4FVaLLCOZE+FaH7ArrV1PHUF7tNXQqimubHoHFHQKWK"
        "63NVjNo6TZPUvBAFuO8LQU0jKYj7DazPiw1xq53J+V+dyf2ZZqIAolxAL15DOVpTGjONhkb5iXGowGT7dFw+vwQUs3OlMjt5gkx0aN+3BvF8"
        "8oM844hj/2OAnUp95+fB6OExml00qqJXOjJ/GdBUTeLxySDWr0xFtAg/0a/cl9DgE+j2eDYZFlsNovnlC+scD1dk+RGGwrjDa6bNbPgCiWYc"
        "srDws1H6ufN3Exr3KdjqAFrmV0MtqbL5n5P+zTdomVQPAMoXt7q1eNNrz/j+5psVzQXPoPW1vIrV9SXtu/pS6d84W8mcegCr38bTd3/uU2g+"
        "wgGNZfcOD9XQrY44dXvxrgXTtP/J26iaa4bQqUwhdUaK5udX//ZbaJauVDuGOmPrqWazzJWFDegAOpWKXebK60XdX/JkY6XPnGGTf/Dv/geg"
        "ptW/"
    ),
    "podresources/v1": (
        "eNqVVc2OEkEQdhiWnwIWtjULC6xsxoMkGjZg9ODBiJIoiUvWyZp4MCGzM61OAvQ4PZDg2YM3Lz6KZ1/Al/AlvNs/M0MDg+veuuurrqqv+qtu"
        "+FYGwyOOjymZ+zamp4vuqbrveD4JCEotusYRVF+5NDgnjhmhJv40xzQwXkNtG6IemVGMHkKJBRzHEWvaid4u9CqdRbezdqDoKTvjLRy+wEnJ"
        "0BHkeMCZNcUsltbOm1m2H7EtuiNzcYh6lo1rKYEXQ1zYjHOobkXeXav2H7UeQ6M/mRDbCqzLCd7qzncNmsl4mLYDWQcv3FVzbvGEz8kssNwZ"
        "9gcSMyMnVIWs7c3HrkMZQb2tmxm2HToU3YPMFE+Jv6zpIs7NtThnAjJDF+OnBkWVFEKQVpoq1qgJ+c1urgzoEYAdRadhzsO1nCuyiqdKIL2D"
        "wN7VBH5rgLYTJdJQOpy6Zof1HQWmrywQPYUDZ8nyu7YiKYXYQIJR6WbFWTdQ44sGlc0qucqjcOoUFCOjGIVjAEkmlgm7OWnhPO5DLiAemZAP"
        "XCuxyC9C23D2npixhxFAeYMjakFBshwHSy8qAaTpgln4NVD3sxRN2hTra2btQVFFkAF7M+LEQ1LkR0dvzvojZjQlZNQhF5nQPqSGA1GZbrKV"
        "8UOD8kbLeZvsiUWp2si8sERdZBt3KuFUDLtTAd+F8gqWM6ILn/3YRw7K48hxpQOpnwOhHw7FKpBnVxr4pUFpzYOpuWA77nj9zSiJSIOhVAkb"
        "N8eNBMPuyvHdBfZVGiBNgkcD8h4hEwlLBjluECA/LZUk4HR4WpiEw23I0Y+Wz5XG1M3QlzfMrLAMna+a9qwA+XHkYLQgHxeZNKq9P2yq1WeJ"
        "fyzYR31I8xVqcJo7/qF6MxkMn9l34uFPeolRix/8xxteP9ntEEZ/AjqLjurcMfnnqjcSMXn+MiN+2gd/AedAXFo="
    ),
    "podresources/v1alpha1": (
        "eNp9Uj1PwzAQVdsI6JFK6AYIVZHALJlStXSDDRYkQCgDbEQmtkQkiI2dduQf8p+IbZkYWph8vvf83n0YPiNIpWCKa7FUJdfT1Yy+yhc6m4bZ"
        "TCrRCNzxIDmEg5tKN/eC5Z6T8/cl1w15hGQd0lLUmuM5jFrZ4ls36R0P0t35fuaFsx/PYhncyAfEIYoIUU3feKvRS4e5jXECQ3NqSUue9C3Q"
        "JfACoBR1Q6uaK50MrPek8770WFdBwCdPgOuMjVUsYJvxVWUa7FuT8QaTK8fIPZU8wN5vEE9h5IdVBDaxT94ZuyMAp1FUzDm2XbvMNdPzEjCc"
        "m1kOV3gLkYnwpCvtj42OyX8Ut9nnLftDzr4AQYDBrg=="
    ),
    "registration/v1": (
        "eNqNUcFKxDAQpW7VdVRwBw+liC49iCB2UT9C9CASQY9LpbNLQZOYTBf25G/4VX6TbbKWQHvwNvPeS+bNG/iOITO0rCybgislZ6vrWdjn2ihW"
        "iPq9XlYyZLJD2L+XCyXosybL2RfAkxO1ICLEvNaURNPoYk+4usVk8UHJlsfaGlMYkyy1qiQnI4d3PV4B2lprZZjK+YqMbabaJJ6OGtWkY142"
        "RPYKKAJ/z1xwbfESJt773JsnQ6VzNRZHnhAdjsewTcYos7Hom+wE0v7HgqxuptLNTwQHIY0PsHtH7FI4y/u55UFo6emQIIjRQPKouFqsBzY7"
        "H3rb16X5/3R/C73tuJPf/gIa/7oJ"
    ),
    "resource/v1alpha2": (
        "eNqllE9v0zAYxtWlW9N3W5ksdSuomiYLIQ4oE2MTCHGp4DAOVMwV44TAba3NIk062+m0Ayc+AeKb8T34ApxwHCdpszSi7OY/7/N7HttvAn9a"
        "gAWTYSRG7HD2lPrTS3p0KJWIRioSbOxNRahC1P36Qno89OiUe2m5l5bjh7BzzoJxKN5TQSdMMSHRDjiCXndqB7XHWyQe4l9r0BlkYGIppzQY"
        "+wyNoT0ziNc+lTLnGMDmkedVBfCK7qQctuDCJ3Mua3d0mYehB+AG4Zj19bxT1+AmyeaoDw0NjnwlO+sHjvY8rvZ8I/iMiZ7vhyOqeBgQIyYp"
        "BP+uwW55DbqEvSQfYVcRk+rOl7oMhzi0acH9nT6wb6/1WbVPr0xKyon4G7RL6/XTtgKdJ+ur9JCvqs37C5pb91xg4mPYr1YgBPVYY9ybxIxx"
        "ANupIAn7aUnYk1XC5oNiygnsLSlFBJo8kIoGiek/dOAi6a0VkxyDv+seLK8quw30AYAqJfgwUiz+8pxVD95L1WQOhH/UiqfO6kpjDKGVqc+p"
        "HzHbrS//K4ohkAIR/3SgWyVAHYBhGPqfZ1kAl9TjFdSFLf0X5sGF3Vs30TeSNXQKrauIBoqrG7u/YcI/qg5/ZjXETdVoN24IZSENDXGIoxfQ"
        "R7gXr0ufj5jddY3Fiu2iBjGBuNyO0BdA9mDz7KZhP1+FPTCUBL8p8wnah239P5T6m7RwMHfXsIv4ye12tdl0n+icyYfhEDPGJ3B/qa9+v0bi"
        "nGi0iZ1iDO5Zfsf23WwD2tlfT7+F8Q=="
    ),
}
